package cli

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

// The exit codes, which pipelines branch on.
const (
	exitDone     = 0 // done, or the gate passed
	exitFailed   = 1
	exitUsage    = 2 // wrong usage or bad input, also by the hub's word
	exitWaiting  = 3 // still waiting when the time was over
	exitNoAnswer = 4 // no answer was had, or access was refused
)

// exitError carries an exit code. Without an error there is nothing to print.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef makes the error of a command line that cannot be followed; it says
// what to write instead.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// exitCode returns the code of an error that a command returned.
func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}

// fromHub gives an error of the hub's client its exit code.
func fromHub(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: hubCode(err), err: err}
}

func hubCode(err error) int {
	switch status := hubclient.Status(err); status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return exitUsage
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusGone:
		if p, ok := errors.AsType[*schema.Problem](err); ok && p.Code != hubclient.CodeForeignAnswer {
			return exitFailed
		}
	}
	return exitNoAnswer
}
