package gitrepo

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
)

// OpenReader is Reader for who reads much at once: it keeps the mirror's files
// open until it is closed.
func (r *Repo) OpenReader() *Reader { return r.newReader(true) }

// Close closes what an OpenReader keeps open.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s.Close()
}

// Details are what people read of a commit.
type Details struct {
	// Author is a name, without the address.
	Author      string
	CommittedAt time.Time
	// Subject is the first line of the message.
	Subject string
}

// mostAuthor and mostSubject bound what is kept of a commit's text, in bytes.
const (
	mostAuthor  = 200
	mostSubject = 200
)

// Details reads what people read of a commit.
func (r *Reader) Details(id ID) (Details, error) {
	defer r.begin()()
	d, err := r.details(id)
	if err != nil {
		return d, fmt.Errorf("reading commit %s of %s: %w", id, r.name, err)
	}
	return d, nil
}

func (r *Reader) details(id ID) (Details, error) {
	var d Details
	o, err := r.s.EncodedObject(plumbing.CommitObject, plumbing.Hash(id))
	if err != nil {
		return d, err
	}
	from, err := o.Reader()
	if err != nil {
		return d, err
	}
	defer from.Close()
	lines := bufio.NewReader(io.LimitReader(from, mostHeader))
	for header := true; ; {
		line, err := lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case !header && strings.TrimSpace(line) != "":
			d.Subject = oneLine(line, mostSubject)
			return d, nil
		case line == "":
			header = false
		case header && word == "author":
			name, _ := signature(rest)
			d.Author = oneLine(withoutAddress(name), mostAuthor)
		case header && word == "committer":
			_, at := signature(rest)
			d.CommittedAt = time.Unix(at, 0).UTC()
		}
		if err != nil { // the end, or the end of what is looked at: the subject is empty
			return d, nil //nolint:nilerr // a commit without a message is none the worse
		}
	}
}

// signature reads the name and the time of `Name <address> seconds zone`. A time
// that cannot be one is 0.
func signature(s string) (name string, at int64) {
	name, _, _ = strings.Cut(s, "<")
	if i := strings.LastIndexByte(s, '>'); i >= 0 {
		fields := strings.Fields(s[i+1:])
		if len(fields) > 0 {
			at, _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	if at < 0 || at > mostTime {
		at = 0
	}
	return strings.TrimSpace(name), at
}

// withoutAddress cuts the hosts off mail addresses that stand for a name.
func withoutAddress(name string) string {
	words := strings.Fields(name)
	for i, word := range words {
		if at := strings.IndexByte(word, '@'); at > 0 {
			words[i] = word[:at]
		}
	}
	return strings.Join(words, " ")
}

// mostTime is the end of the year 9999: nobody can write down a later time.
const mostTime = 253402300799

// oneLine makes a stranger's text one line of at most n bytes, without user info.
func oneLine(s string, n int) string {
	s = strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, userInfo.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "//")))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// Beginning reads the first bytes of a file by its id, most of them at most, and
// says how many bytes the file has.
func (r *Reader) Beginning(id ID, most int64) (text []byte, size int64, err error) {
	defer r.begin()()
	o, err := r.s.EncodedObject(plumbing.BlobObject, plumbing.Hash(id))
	if err != nil {
		return nil, 0, fmt.Errorf("reading file %s of %s: %w", id, r.name, err)
	}
	from, err := o.Reader()
	if err != nil {
		return nil, 0, fmt.Errorf("reading file %s of %s: %w", id, r.name, err)
	}
	defer from.Close()
	if text, err = io.ReadAll(io.LimitReader(from, most)); err != nil {
		return nil, 0, fmt.Errorf("reading file %s of %s: %w", id, r.name, err)
	}
	return text, o.Size(), nil
}
