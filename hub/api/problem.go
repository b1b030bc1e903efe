package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

// kind is what a code means in HTTP.
type kind struct {
	status int
	title  string
	// retryAfter is in seconds; 0 where trying again does not help.
	retryAfter int
}

// kinds is the one table of codes.
var kinds = map[schema.Code]kind{
	schema.CodeInvalidJSON:       {http.StatusBadRequest, "The body is not valid JSON", 0},
	schema.CodeUnknownField:      {http.StatusBadRequest, "The body has a member that nobody knows", 0},
	schema.CodeMissingField:      {http.StatusBadRequest, "A required member is missing", 0},
	schema.CodeInvalidField:      {http.StatusBadRequest, "A member's value is not allowed", 0},
	schema.CodeInvalidParameter:  {http.StatusBadRequest, "A parameter's value is not allowed", 0},
	schema.CodeUnknownParameter:  {http.StatusBadRequest, "There is no such parameter", 0},
	schema.CodeInvalidCommit:     {http.StatusBadRequest, "Not a full commit id", 0},
	schema.CodeInvalidRepo:       {http.StatusBadRequest, "Not a repository URL", 0},
	schema.CodeInvalidRef:        {http.StatusBadRequest, "Not a ref", 0},
	schema.CodeInvalidPath:       {http.StatusBadRequest, "Not a path inside the repository", 0},
	schema.CodeInvalidRevision:   {http.StatusBadRequest, "Not a revision", 0},
	schema.CodeInvalidCursor:     {http.StatusBadRequest, "Not a cursor of this list", 0},
	schema.CodeInvalidDescriptor: {http.StatusBadRequest, "A descriptor is not as it should be", 0},
	schema.CodeDuplicate:         {http.StatusBadRequest, "One thing stands there twice", 0},
	schema.CodeUnauthenticated:   {http.StatusUnauthorized, "A valid token is needed", 0},
	schema.CodeForbidden:         {http.StatusForbidden, "This token may not do that", 0},
	schema.CodeNotFound:          {http.StatusNotFound, "There is no such thing", 0},
	schema.CodeNotRegistered:     {http.StatusNotFound, "The cluster is not registered", 0},
	schema.CodeMethodNotAllowed:  {http.StatusMethodNotAllowed, "The route has other methods", 0},
	schema.CodeFutureEpoch:       {http.StatusConflict, "The hub never issued that epoch", 0},
	schema.CodeConflict:          {http.StatusConflict, "It contradicts what is stored", 0},
	schema.CodeDecommissioned:    {http.StatusGone, "The cluster is decommissioned", 0},
	schema.CodeBodyTooLarge:      {http.StatusRequestEntityTooLarge, "The body is too large", 0},
	schema.CodeUnsupportedMedia:  {http.StatusUnsupportedMediaType, "Nobody reads that type or encoding", 0},
	schema.CodeOverloaded:        {http.StatusTooManyRequests, "Too much at once; try again later", 1},
	schema.CodeInternal:          {http.StatusInternalServerError, "A fault of the hub's own", 0},
	schema.CodeUnavailable:       {http.StatusServiceUnavailable, "Not available now; try again", 5},
}

// maxDetail and maxPointer bound what a problem repeats of a request, in bytes.
const (
	maxDetail  = 1024
	maxPointer = 512
)

func refuse(code schema.Code, format string, args ...any) error {
	return &schema.Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// blame complains about a query parameter or a path segment.
func blame(code schema.Code, parameter, format string, args ...any) error {
	return &schema.Problem{Code: code, Parameter: parameter, Detail: fmt.Sprintf(format, args...)}
}

// problemOf returns the problem of an error, without anything that is the
// hub's own business.
func problemOf(err error, requestID string) schema.Problem {
	var (
		p       schema.Problem
		invalid *schema.Invalid
		refusal *schema.Refusal
		problem *schema.Problem
	)
	switch {
	case errors.As(err, &problem):
		p = *problem
	case errors.As(err, &invalid):
		p = schema.Problem{Code: invalid.Code, Pointer: invalid.Pointer, Detail: invalid.Detail}
	case errors.As(err, &refusal):
		p = schema.Problem{Code: refusal.Code, Detail: refusal.Detail}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p = schema.Problem{Code: schema.CodeUnavailable, Detail: "the answer did not come in time; try again"}
	default:
		p = schema.Problem{Code: schema.CodeInternal}
	}
	k, known := kinds[p.Code]
	if !known || p.Code == schema.CodeInternal {
		p.Code, k = schema.CodeInternal, kinds[schema.CodeInternal]
		p.Detail = "the hub's log has the cause under the request id " + requestID
		p.Pointer, p.Parameter, p.Errors = "", "", nil
	}
	p.Type, p.Title, p.Status = "about:blank", k.title, k.status
	p.Detail = shorten(p.Detail, maxDetail)
	p.Pointer = shorten(p.Pointer, maxPointer)
	return p
}

// shorten cuts s at the border of a character, so that a problem stays small
// whatever the request held.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// fail answers with the problem of an error, and logs what is the hub's fault.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	id := requestID(r.Context())
	p := problemOf(err, id)
	switch {
	case p.Status == http.StatusInternalServerError:
		a.logger.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("request_id", id), slog.Any("error", err))
	case p.Status >= http.StatusInternalServerError && r.Context().Err() == nil:
		a.logger.LogAttrs(r.Context(), slog.LevelWarn, "request refused", slog.String("request_id", id), slog.Any("error", err))
	}
	if s := kinds[p.Code].retryAfter; s > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(s))
	}
	body, err := marshal(p)
	if err != nil { // a problem is plain text and numbers
		panic(err)
	}
	a.write(w, r, p.Status, "application/problem+json", body)
}
