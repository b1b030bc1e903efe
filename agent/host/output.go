package host

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode"
)

// Bounds of what a command prints, in bytes.
const (
	mostTail = 4 << 10  // kept in memory: the end
	mostLog  = 10 << 20 // kept on disk: the beginning
)

// output takes what a command prints: all of it to a file up to a bound, and
// the end of it in memory. It is used by one goroutine at a time.
type output struct {
	file *os.File
	left int
	tail []byte
	cut  bool
}

// newOutput begins a log; the one before is kept beside it.
func newOutput(path string) (*output, error) {
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &output{file: file, left: mostLog}, nil
}

// Write never fails: a full disk must not end the command.
func (o *output) Write(b []byte) (int, error) {
	if n := min(len(b), o.left); n > 0 {
		_, _ = o.file.Write(b[:n])
		if o.left -= n; o.left == 0 {
			fmt.Fprintf(o.file, "\n(the rest is left out: more than %d bytes)\n", mostLog)
		}
	}
	o.tail = append(o.tail, b...)
	if over := len(o.tail) - mostTail; over > 0 {
		o.tail, o.cut = append(o.tail[:0], o.tail[over:]...), true
	}
	return len(b), nil
}

func (o *output) close() error { return o.file.Close() }

var (
	colours  = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")
	userInfo = regexp.MustCompile(`//[^/\s@]*@`)
)

// last returns the last lines, as far as they fit into so many bytes.
func (o *output) last(most int) string {
	text := strings.ToValidUTF8(string(o.tail), "")
	text = userInfo.ReplaceAllString(colours.ReplaceAllString(text, ""), "//")
	text = strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, text))
	if !o.cut && len(text) <= most {
		return text
	}
	const more = "…\n"
	if over := len(text) - (most - len(more)); over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
	}
	// A line that lost its beginning says little, unless it is the only one.
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		text = rest
	}
	return more + text
}
