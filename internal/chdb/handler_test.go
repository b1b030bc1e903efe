package chdb

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFeed(t *testing.T) {
	errGone := errors.New("the client is gone")
	long := strings.Repeat("0123456789", insertPiece/4)
	cases := map[string]struct {
		reason string
		body   io.Reader
		accept int
		want   int
		err    error
	}{
		"empty":         {"no data is no error here", strings.NewReader(""), 99, 0, nil},
		"short":         {"less than a piece", strings.NewReader("abc"), 99, 3, nil},
		"long":          {"several pieces and a rest", strings.NewReader(long), 99, len(long), nil},
		"one by one":    {"a body in drops", iotest.OneByteReader(strings.NewReader("abc")), 99, 3, nil},
		"end with data": {"the end may come with the last bytes", iotest.DataErrReader(strings.NewReader("abc")), 99, 3, nil},
		"breaks off": {"what the server's reader gives when a client breaks off",
			io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), 99, 0, io.ErrUnexpectedEOF},
		"fails":           {"any other failure", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errGone)), 99, 0, errGone},
		"the engine ends": {"a failed INSERT takes no more", strings.NewReader(long), 1, insertPiece, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var taken strings.Builder
			pieces := 0
			_, err := feed(func(piece []byte) bool {
				if pieces == tc.accept {
					return false
				}
				pieces++
				taken.Write(piece)
				return true
			}, tc.body)
			if !errors.Is(err, tc.err) || taken.Len() != tc.want {
				t.Errorf("%s: %d bytes taken, want %d; error %v, want %v", tc.reason, taken.Len(), tc.want, err, tc.err)
			}
		})
	}
}
