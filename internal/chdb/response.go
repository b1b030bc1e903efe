package chdb

import (
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// holdBack is how much of an answer is kept before the first byte goes out. A
// statement that fails before then gets a proper status.
const holdBack = 1 << 20

// tagSize is the length of the random tag that marks an exception in the middle
// of an answer, fixed by ClickHouse.
const tagSize = 16

// response writes one answer: held back at first, then streamed.
type response struct {
	w      http.ResponseWriter
	header http.Header
	held   []byte
	tag    string
	// body is nil until the first byte has gone out.
	body io.Writer
	zip  *gzip.Writer
	gzip bool
	// status gives the HTTP status for a code of ClickHouse's.
	status func(code int) int
}

func newResponse(w http.ResponseWriter, status func(code int) int) *response {
	return &response{w: w, header: w.Header(), status: status}
}

// describe sets the headers that do not depend on the outcome.
func (o *response) describe(req *request) {
	o.header.Set("Content-Type", "text/plain; charset=UTF-8")
	if req.output == "Native" {
		o.header.Set("Content-Type", "application/octet-stream")
	}
	o.header.Set("X-ClickHouse-Format", req.output)
	o.tag = rand.Text()[:tagSize]
	o.header.Set("X-ClickHouse-Exception-Tag", o.tag)
	o.gzip = req.gzip
}

// write adds to the answer. An error means that the client is gone.
func (o *response) write(piece []byte) error {
	if o.body == nil {
		if len(o.held)+len(piece) <= holdBack {
			o.held = append(o.held, piece...)
			return nil
		}
		if err := o.start(); err != nil {
			return err
		}
	}
	if _, err := o.body.Write(piece); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// start sends the status and what was held back.
func (o *response) start() error {
	o.body = o.w
	if o.gzip {
		o.header.Set("Content-Encoding", "gzip")
		// The level is a constant that gzip knows, so there is no error.
		o.zip, _ = gzip.NewWriterLevel(o.w, gzip.BestSpeed)
		o.body = o.zip
	}
	o.w.WriteHeader(http.StatusOK)
	held := o.held
	o.held = nil
	if _, err := o.body.Write(held); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// finish ends a good answer.
func (o *response) finish() {
	if o.body == nil {
		if !o.gzip {
			o.header.Set("Content-Length", strconv.Itoa(len(o.held)))
		}
		if err := o.start(); err != nil {
			return
		}
	}
	if o.zip != nil {
		// An error means that the client is gone: nobody is left to tell.
		_ = o.zip.Close()
	}
}

// fail ends an answer with an error: as a status while that is possible, else
// as ClickHouse's frame for exceptions, after which the connection is broken
// off. Either way no client can take what it got for the whole answer.
func (o *response) fail(err error) {
	exception := asException(err)
	if o.body == nil {
		o.header.Set("Content-Type", "text/plain; charset=UTF-8")
		o.header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(exception.Code))
		o.header.Del("X-ClickHouse-Exception-Tag")
		o.w.WriteHeader(o.status(exception.Code))
		_, _ = io.WriteString(o.w, exception.Text+"\n")
		return
	}
	text := exception.Text
	if len(text) > 8<<10 {
		text = text[:8<<10]
	}
	frame := fmt.Sprintf("\r\n__exception__\r\n%s\r\n%s\n%d %s\r\n__exception__\r\n", o.tag, text, len(text)+1, o.tag)
	_, _ = io.WriteString(o.body, frame)
	if o.zip != nil {
		_ = o.zip.Flush()
	}
	_ = http.NewResponseController(o.w).Flush()
	panic(http.ErrAbortHandler)
}

func statusOf(code int) int {
	switch code {
	case codeAuthentication:
		return http.StatusUnauthorized
	case codeTooManyQueries:
		return http.StatusServiceUnavailable
	case codeNotImplemented:
		return http.StatusNotImplemented
	default:
		return http.StatusInternalServerError
	}
}

func asException(err error) *Exception {
	var exception *Exception
	if errors.As(err, &exception) {
		return exception
	}
	return failure(codeUnknownFailure, "%v", err)
}
