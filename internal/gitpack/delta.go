package gitpack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

const (
	// mostHeld bounds the contents that are held in memory at one time, smallest
	// those that are held in any case.
	mostHeld = 32 << 20
	smallest = 4 << 10
	// mostSpilled bounds those that lie in files meanwhile.
	mostSpilled = 4 << 30
)

// resolve finds the ids of deltas. It goes down from each whole object to those
// that it tells, with the contents on the way held.
func (p *pack) resolve(ctx context.Context, folder string, file *os.File) error {
	r := &resolver{pack: p, scanner: packfile.NewScanner(file), folder: folder, patch: bufio.NewReader(nil)}
	r.sort()
	defer func() { _ = r.drop(0) }() // an error came first
	for i := range p.entries {
		n := int32(i)
		if p.entries[n].kind.IsDelta() || !r.tells(n) {
			continue
		}
		if err := r.descend(ctx, n); err != nil {
			return ended(err)
		}
	}
	for i := range p.entries {
		if p.entries[i].id.IsZero() {
			return fmt.Errorf("%w: an object is told by one that is not there", packfile.ErrMalformedPackFile)
		}
	}
	return nil
}

type resolver struct {
	*pack
	scanner *packfile.Scanner
	folder  string
	patch   *bufio.Reader
	// first and next list the entries that one tells, by their numbers.
	first, next []int32
	// waiting lists those that name what they are told by.
	waiting map[plumbing.Hash][]int32
	// way are the objects from a whole one down to the present one.
	way           []step
	held, spilled int64
}

// step is an object on the way down.
type step struct {
	content content
	kind    plumbing.ObjectType
	// left are those that it tells and that were not visited yet, named first.
	named []int32
	left  int32
}

// sort makes the lists.
func (r *resolver) sort() {
	r.first, r.next = make([]int32, len(r.entries)), make([]int32, len(r.entries))
	for i := range r.first {
		r.first[i] = nothing
	}
	for i := len(r.entries) - 1; i >= 0; i-- {
		if base := r.entries[i].base; base != nothing {
			r.next[i] = r.first[base]
			r.first[base] = int32(i) //nolint:gosec // at most mostObjects
		}
	}
	r.waiting = map[plumbing.Hash][]int32{}
	for _, ref := range r.refs {
		r.waiting[ref.base] = append(r.waiting[ref.base], ref.number)
	}
}

// tells reports whether others may be told by an entry; of a delta, whose id is
// not known yet, some may as long as anybody waits.
func (r *resolver) tells(n int32) bool {
	if r.first[n] != nothing {
		return true
	}
	if r.entries[n].id.IsZero() {
		return len(r.waiting) > 0
	}
	return len(r.waiting[r.entries[n].id]) > 0
}

// descend visits all that is told by a whole object, the deepest first.
func (r *resolver) descend(ctx context.Context, whole int32) error {
	e := &r.entries[whole]
	to := spool{resolver: r, size: e.size}
	if _, err := r.scanner.SeekObjectHeader(e.offset); err != nil {
		return errors.Join(err, to.close())
	}
	if _, _, err := r.scanner.NextObject(patient{ctx, &to}); err != nil {
		return errors.Join(err, to.close())
	}
	r.enter(whole, to.content, e.kind)
	for len(r.way) > 0 {
		at := &r.way[len(r.way)-1]
		n := at.left
		switch {
		case len(at.named) > 0:
			n, at.named = at.named[0], at.named[1:]
		case n == nothing:
			if err := r.drop(len(r.way) - 1); err != nil {
				return err
			}
			continue
		default:
			at.left = r.next[n]
		}
		if len(r.way) > mostDepth {
			return fmt.Errorf("%w: more than %d objects are told by one another", packfile.ErrMalformedPackFile, mostDepth)
		}
		if err := r.tell(ctx, n, at.content, at.kind); err != nil {
			return err
		}
	}
	return nil
}

// enter goes down to an object whose id is known.
func (r *resolver) enter(n int32, c content, kind plumbing.ObjectType) {
	id := r.entries[n].id
	r.way = append(r.way, step{content: c, kind: kind, named: r.waiting[id], left: r.first[n]})
	delete(r.waiting, id) // of two equal objects, one is enough
}

// drop releases all of the way but the first n steps.
func (r *resolver) drop(n int) (err error) {
	for i := n; i < len(r.way); i++ {
		err = errors.Join(err, r.release(&r.way[i].content))
	}
	r.way = r.way[:n]
	return err
}

// tell makes an object from the one that tells it, for its id.
func (r *resolver) tell(ctx context.Context, n int32, base content, kind plumbing.ObjectType) (err error) {
	e := &r.entries[n]
	if _, err := r.scanner.SeekObjectHeader(e.offset); err != nil {
		return err
	}
	from, err := r.scanner.ReadObject()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	r.patch.Reset(from)
	size, err := sizes(r.patch, base.size)
	if err != nil {
		return err
	}
	hasher := plumbing.NewHasher(kind, size)
	keep := spool{resolver: r, size: size}
	var to io.Writer = hasher
	if r.tells(n) {
		to = io.MultiWriter(hasher, &keep)
	}
	if err := apply(patient{ctx, to}, r.patch, base, size); err != nil {
		return errors.Join(err, keep.close())
	}
	e.id = hasher.Sum()
	if r.tells(n) {
		r.enter(n, keep.content, kind)
		return nil
	}
	return keep.close()
}

// errDelta is about a delta that makes no sense.
var errDelta = fmt.Errorf("%w: a delta makes no sense", packfile.ErrMalformedPackFile)

// sizes reads the head of a delta: the size of what it changes, which must be
// that one, and of what it makes.
func sizes(from *bufio.Reader, base int64) (size int64, err error) {
	was, err := binary.ReadUvarint(from)
	if err != nil {
		return 0, err
	}
	will, err := binary.ReadUvarint(from)
	if err != nil {
		return 0, err
	}
	if was != uint64(base) || will > 1<<62 { //nolint:gosec // sizes are not negative
		return 0, errDelta
	}
	return int64(will), nil
}

// apply writes what a delta makes of a base: pieces of it, and new bytes.
func apply(to io.Writer, from *bufio.Reader, base content, size int64) error {
	left := size
	for {
		command, err := from.ReadByte()
		if errors.Is(err, io.EOF) && left == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		var n int64
		var source io.Reader = from
		switch {
		case command == 0:
			return errDelta
		case command&0x80 == 0:
			n = int64(command)
		default:
			var at int64
			if at, n, err = piece(from, command); err != nil {
				return err
			}
			if at+n > base.size {
				return errDelta
			}
			source = io.NewSectionReader(base, at, n)
		}
		if left -= n; left < 0 {
			return errDelta
		}
		if _, err := io.CopyN(to, source, n); err != nil {
			return err
		}
	}
}

// piece reads where a piece of the base begins and how long it is: of each byte
// of both numbers, the command says whether it is there.
func piece(from *bufio.Reader, command byte) (at, n int64, err error) {
	var b [8]byte // four of where, three of how long
	for i := range 7 {
		if command&(1<<i) == 0 {
			continue
		}
		if b[i], err = from.ReadByte(); err != nil {
			return 0, 0, err
		}
	}
	at, n = int64(binary.LittleEndian.Uint32(b[:4])), int64(binary.LittleEndian.Uint32(b[4:]))
	if n == 0 {
		n = 0x10000
	}
	return at, n, nil
}

// content is that of one object, in memory or in a file.
type content struct {
	size int64
	text []byte
	file *os.File
}

func (c content) ReadAt(b []byte, at int64) (int, error) {
	if c.file != nil {
		return c.file.ReadAt(b, at)
	}
	return bytes.NewReader(c.text).ReadAt(b, at)
}

// release gives back what a content holds.
func (r *resolver) release(c *content) error {
	r.held -= int64(cap(c.text))
	c.text = nil
	if c.file == nil {
		return nil
	}
	r.spilled -= c.size
	name := c.file.Name()
	err := errors.Join(c.file.Close(), remove(name))
	c.file = nil
	return err
}

// spool keeps a content of a known size: in memory, or in a file where that would
// be too much.
type spool struct {
	resolver *resolver
	size     int64
	content
}

func (s *spool) Write(b []byte) (int, error) {
	if s.text == nil && s.file == nil {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	s.content.size += int64(len(b))
	if s.file != nil {
		s.resolver.spilled += int64(len(b))
		return s.file.Write(b)
	}
	s.text = append(s.text, b...)
	return len(b), nil
}

func (s *spool) begin() error {
	r := s.resolver
	if s.size <= smallest || s.size <= mostHeld-r.held {
		s.text = make([]byte, 0, s.size)
		r.held += s.size
		return nil
	}
	if s.size > mostSpilled-r.spilled {
		return fmt.Errorf("%w: the objects that are told by one another have more than %d bytes", ErrTooLarge, int64(mostSpilled))
	}
	file, err := os.CreateTemp(r.folder, prefix+"*")
	if err != nil {
		return err
	}
	s.file = file
	return nil
}

func (s *spool) close() error { return s.resolver.release(&s.content) }
