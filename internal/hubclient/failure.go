package hubclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/landfall-hub/landfall/schema"
)

// Sentinels for failures that are no answer of the hub's.
var (
	// ErrSilent says that the other side accepted and then said nothing for
	// longer than a hub ever does.
	ErrSilent = errors.New("the hub said nothing")
	// ErrTooLarge says that an answer is larger than a hub's ever is.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrBadAnswer says that an answer is cut short or contradicts itself.
	ErrBadAnswer = errors.New("the answer is not whole")
	// ErrOtherVerdict says that a verdict answers another question.
	ErrOtherVerdict = errors.New("the verdict answers another question")
)

// CodeForeignAnswer is the code of the problem made from an answer that is not
// the hub's own, such as the page of a proxy. It never travels.
const CodeForeignAnswer schema.Code = "foreign_answer"

// Refused is an answer other than the one asked for. It unwraps to its
// *schema.Problem, whose Status is always that of the HTTP answer.
type Refused struct {
	Problem *schema.Problem
	// RetryAfter is how long the hub asks to wait; zero when it does not.
	RetryAfter time.Duration

	request string
}

// Error returns what was asked of which hub, and its answer.
func (e *Refused) Error() string {
	return e.request + ": " + strconv.Itoa(e.Problem.Status) + " " + e.Problem.Error()
}

// Unwrap returns the problem.
func (e *Refused) Unwrap() error { return e.Problem }

// RetryAfter returns how long the hub asked to wait before the next try, or
// zero when err says nothing of it.
func RetryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.RetryAfter
	}
	return 0
}

// Status returns the HTTP status of the answer in err, or zero when err is no
// answer.
func Status(err error) int {
	if p, ok := errors.AsType[*schema.Problem](err); ok {
		return p.Status
	}
	return 0
}

// Temporary reports whether the same request may succeed later without anybody
// changing it: the network failed, the hub is down, busy or at fault, or
// something between it and us answered in its place.
func Temporary(err error) bool {
	switch status := Status(err); {
	case err == nil:
		return false
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return true
	default:
		return status < 300 || status > 499
	}
}

// failed wraps an error that is no answer. What net/http puts in front of its
// errors is left out: it repeats the URL with the whole query.
func (c *Client) failed(ctx context.Context, k call, doing string, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		err = cause
	}
	if doing != "" {
		return fmt.Errorf("%s: %s: %w", c.request(k), doing, err)
	}
	return fmt.Errorf("%s: %w", c.request(k), err)
}

func (c *Client) request(k call) string {
	return k.method + " " + c.base.String() + k.path
}

// refused makes the error of an answer that is not a success, or not JSON.
func (c *Client) refused(k call, resp *http.Response, body []byte, token string) error {
	p := &schema.Problem{}
	if err := json.Unmarshal(body, p); err != nil || p.Code == "" || resp.StatusCode < 300 {
		p = &schema.Problem{Type: "about:blank", Title: http.StatusText(resp.StatusCode), Code: CodeForeignAnswer, Detail: foreign(resp, body)}
	}
	p.Status = resp.StatusCode
	if token != "" {
		// Some proxies print the request they refused.
		p.Detail = strings.ReplaceAll(p.Detail, token, "[token]")
		p.Title = strings.ReplaceAll(p.Title, token, "[token]")
	}
	return &Refused{Problem: p, RetryAfter: parseRetryAfter(resp), request: c.request(k)}
}

var (
	htmlTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	htmlStart = regexp.MustCompile(`(?is)^\s*<(!doctype|html|head|body)`)
)

// foreign says in short words what answered in the hub's place.
func foreign(resp *http.Response, body []byte) string {
	if where := resp.Header.Get("Location"); where != "" && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return "it redirects to " + short(schema.StripUserInfo(where)) + "; give the hub's final URL"
	}
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	kind, _, _ = strings.Cut(kind, ";")
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0:
		return "an empty answer that is not a hub's"
	case kind == "text/html" || htmlStart.Match(text):
		if m := htmlTitle.FindSubmatch(text); m != nil {
			return "a web page titled " + strconv.Quote(short(string(m[1]))) + ", not a hub's answer; is a proxy between, or is the URL wrong?"
		}
		return "a web page, not a hub's answer; is a proxy between, or is the URL wrong?"
	case kind == "text/plain":
		return "not a hub's answer: " + strconv.Quote(short(string(text)))
	case kind == "":
		return fmt.Sprintf("%d bytes that are not a hub's answer", len(body))
	}
	return fmt.Sprintf("%d bytes of %s that are not a hub's answer", len(body), short(kind))
}

// short returns the beginning of a text on one line, without unprintable
// characters.
func short(s string) string {
	const most = 100
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// parseRetryAfter reads the seconds or the date of Retry-After. A date is
// measured against the answer's own, so that the two clocks need not agree.
func parseRetryAfter(resp *http.Response) time.Duration {
	value := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if n, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
