package hubclient

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxEvent bounds a line and an event's data, in bytes: a verdict of a thousand
// rows with long reasons stays below.
const maxEvent = 16 << 20

// event is one Server-Sent Event.
type event struct {
	name string
	data []byte
}

// eventReader reads Server-Sent Events as the HTML standard describes them.
type eventReader struct {
	r *bufio.Reader
	// onLine is told of every whole line, comments too: the other side lives.
	onLine func()
	// retry is the reconnection time that the other side last asked for.
	retry time.Duration

	line    []byte
	afterCR bool
	begun   bool
}

func newEventReader(r io.Reader, onLine func()) *eventReader {
	return &eventReader{r: bufio.NewReader(r), onLine: onLine}
}

// next returns the next event that has data. An event that the end of the
// stream cuts short is dropped, and the error is io.EOF.
func (e *eventReader) next() (event, error) {
	var ev event
	hasData := false
	for {
		if err := e.readLine(); err != nil {
			return event{}, err
		}
		e.onLine()
		if len(e.line) == 0 {
			if hasData {
				return ev, nil
			}
			ev.name = ""
			continue
		}
		field, value := splitField(e.line)
		switch field {
		case "event":
			ev.name = string(value)
		case "data":
			if len(ev.data)+len(value) > maxEvent {
				return event{}, fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, maxEvent)
			}
			if hasData {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
			hasData = true
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// readLine reads one line, ended by LF, CR or CRLF, into e.line.
func (e *eventReader) readLine() error {
	e.line = e.line[:0]
	for {
		if _, err := e.r.Peek(1); err != nil {
			return err
		}
		ready, err := e.r.Peek(e.r.Buffered())
		if err != nil {
			return err
		}
		if e.afterCR && ready[0] == '\n' {
			ready = ready[1:]
			e.discard(1)
		}
		e.afterCR = false
		end := bytes.IndexAny(ready, "\r\n")
		n := end
		if end < 0 {
			n = len(ready)
		}
		if len(e.line)+n > maxEvent {
			return fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, maxEvent)
		}
		e.line = append(e.line, ready[:n]...)
		if end < 0 {
			e.discard(n)
			continue
		}
		e.afterCR = ready[end] == '\r'
		e.discard(n + 1)
		if !e.begun {
			e.begun = true
			e.line = bytes.TrimPrefix(e.line, byteOrderMark)
		}
		return nil
	}
}

// discard drops n bytes that are buffered, which cannot fail.
func (e *eventReader) discard(n int) { _, _ = e.r.Discard(n) }

var byteOrderMark = []byte("\ufeff")

// splitField splits "field: value"; a comment has an empty field.
func splitField(line []byte) (field string, value []byte) {
	for i, b := range line {
		if b != ':' {
			continue
		}
		value = line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		return string(line[:i]), value
	}
	return string(line), nil
}
