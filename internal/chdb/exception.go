package chdb

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Codes of ClickHouse's own for failures that this package finds by itself.
const (
	codeBadArguments    = 36
	codeCannotReadAll   = 33
	codeNotImplemented  = 48
	codeTooManyQueries  = 202
	codeQueryTooLarge   = 62 // SYNTAX_ERROR
	codeAuthentication  = 516
	codeAccessDenied    = 497
	codeReadonly        = 164
	codeUnknownFunction = 46
	codeUnknownName     = 47
	codeUnknownTable    = 60
	codeNoParameter     = 456
	codeUnknownFailure  = 1002
	codeQueryWasStopped = 394
	codeNotEnoughSpace  = 243
)

var codeNames = map[int]string{
	codeBadArguments:    "BAD_ARGUMENTS",
	codeCannotReadAll:   "CANNOT_READ_ALL_DATA",
	codeNotImplemented:  "NOT_IMPLEMENTED",
	codeTooManyQueries:  "TOO_MANY_SIMULTANEOUS_QUERIES",
	codeQueryTooLarge:   "SYNTAX_ERROR",
	codeAuthentication:  "AUTHENTICATION_FAILED",
	codeAccessDenied:    "ACCESS_DENIED",
	codeUnknownFailure:  "UNKNOWN_EXCEPTION",
	codeQueryWasStopped: "QUERY_WAS_CANCELLED",
	codeNotEnoughSpace:  "NOT_ENOUGH_SPACE",
}

// Exception is a failure as ClickHouse words it.
type Exception struct {
	// Code is ClickHouse's error code, for example 60 for an unknown table.
	Code int
	// Text is the whole message, "Code: 60. DB::Exception: …" at its start.
	Text string
}

// Error returns the whole message.
func (e *Exception) Error() string { return e.Text }

var codePattern = regexp.MustCompile(`Code:\s*(\d+)\.`)

// newException reads the code out of the library's message. Whatever the
// library puts before it ("Error: ", a file name) is dropped, because clients
// look for the code at the start.
func newException(text string) *Exception {
	text = strings.TrimSpace(text)
	match := codePattern.FindStringSubmatchIndex(text)
	if match == nil {
		return failure(codeUnknownFailure, "%s", text)
	}
	code, err := strconv.Atoi(text[match[2]:match[3]])
	if err != nil || code <= 0 {
		return failure(codeUnknownFailure, "%s", text)
	}
	return &Exception{Code: code, Text: text[match[0]:]}
}

// failure words a failure of this package's own as ClickHouse would.
func failure(code int, format string, args ...any) *Exception {
	text := fmt.Sprintf(format, args...)
	if name := codeNames[code]; name != "" {
		text += " (" + name + ")"
	}
	return &Exception{Code: code, Text: fmt.Sprintf("Code: %d. DB::Exception: %s", code, text)}
}
