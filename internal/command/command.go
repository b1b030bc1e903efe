// Package command is the command line of a service: one command that runs it,
// one that checks its settings, its version and its help.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/landfall-hub/landfall/internal/settings"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Program is what only a main function may read.
type Program struct {
	Args           []string
	Env            func(string) string
	Stdout, Stderr io.Writer
	Version        string
}

// Service is what a program serves with settings that are a T.
type Service[T any] struct {
	// Name is the program's, Run the command that runs the service.
	Name, Run string
	// Usage is the help, with a line break at its end.
	Usage    string
	Settings settings.Settings[T]
	// Serve runs the service until ctx ends.
	Serve func(ctx context.Context, p Program, config T) error
	// Check looks at what good settings name, runs nothing, and returns what to
	// say of them: lines without a break at the end.
	Check func(p Program, config T) (string, error)
}

// Main runs a command and returns the exit code: 0 done, 1 failed, 2 usage or
// bad settings.
func (s Service[T]) Main(ctx context.Context, p Program) int {
	name, rest := "", []string(nil)
	if len(p.Args) > 0 {
		name, rest = p.Args[0], p.Args[1:]
	}
	switch name {
	case s.Run:
		return s.with(p, name, rest, func(config T) int {
			if err := s.Serve(ctx, p, config); err != nil {
				return s.fail(p, exitFailed, err)
			}
			return exitDone
		})
	case "config":
		if len(rest) > 0 && rest[0] == "check" {
			return s.with(p, "config check", rest[1:], func(config T) int {
				text, err := s.Check(p, config)
				if err != nil {
					return s.fail(p, exitUsage, err)
				}
				fmt.Fprintln(p.Stdout, text)
				return exitDone
			})
		}
	case "version", "--version":
		fmt.Fprintln(p.Stdout, p.Version)
		return exitDone
	case "help", "-h", "--help":
		fmt.Fprint(p.Stdout, s.Usage)
		return exitDone
	}
	fmt.Fprint(p.Stderr, s.Usage)
	return exitUsage
}

// with reads the settings and goes on with good ones.
func (s Service[T]) with(p Program, command string, args []string, do func(T) int) int {
	config, err := s.Settings.Load(s.Name+" "+command, args, p.Env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.Stdout, s.Usage)
		return exitDone
	case err != nil:
		return s.fail(p, exitUsage, err)
	}
	return do(config)
}

func (s Service[T]) fail(p Program, code int, err error) int {
	fmt.Fprintln(p.Stderr, s.Name+":", err)
	return code
}
