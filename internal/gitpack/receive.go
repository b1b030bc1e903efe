package gitpack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// ErrTooLarge is what an error wraps that is about a bound.
var ErrTooLarge = errors.New("it is too large")

// Bounds of one pack, whatever its sender says.
const (
	// mostObjects is how many objects it may hold, of which each takes about 60
	// bytes of memory until its index is written.
	mostObjects = 8 << 20
	// mostDelta bounds what tells one object from another, in bytes: who reads the
	// object holds that in memory.
	mostDelta = 128 << 20
	// mostDepth is how many objects may be told by one another in a row; Git's own
	// bound.
	mostDepth = 4095
)

// prefix is how the names of unfinished files begin.
const prefix = "tmp_pack_"

// Receive writes a pack that a server sends into a folder, with its index. There
// is an error where the pack is not whole or not sound, and where ctx ends;
// nothing is left of it then. name is the pack's, without .pack. took is called when all has come: what remains is
// work on this machine. Memory holds about 60 bytes an object, and 32 MiB; files of
// any size pass through.
func Receive(ctx context.Context, folder string, from io.Reader, took func()) (name string, err error) {
	file, err := os.CreateTemp(folder, prefix+"*")
	if err != nil {
		return "", fmt.Errorf("making a file for a pack: %w", err)
	}
	p, err := take(ctx, folder, file, from, took)
	if err = errors.Join(err, file.Close()); err == nil {
		name, err = publish(folder, file.Name(), p)
	}
	return name, errors.Join(err, remove(file.Name()))
}

// take writes what comes to a file, and reads all that its index is to say.
func take(ctx context.Context, folder string, file *os.File, from io.Reader, took func()) (*pack, error) {
	to := bufio.NewWriterSize(file, 256<<10)
	p, err := scan(ctx, io.TeeReader(from, to))
	if err == nil {
		_, err = io.Copy(to, from) // there is nothing more, or too much
	}
	if err = errors.Join(err, to.Flush()); err == nil {
		err = p.endsIn(file)
	}
	if err != nil {
		return nil, fmt.Errorf("taking a pack: %w", err)
	}
	took()
	if err := p.resolve(ctx, folder, file); err != nil {
		return nil, fmt.Errorf("reading a pack that was taken: %w", err)
	}
	if err := file.Sync(); err != nil {
		return nil, fmt.Errorf("writing a pack: %w", err)
	}
	return p, nil
}

// publish gives a pack that is written its index and its name.
func publish(folder, written string, p *pack) (name string, err error) {
	name = "pack-" + p.sum.String()
	base := filepath.Join(folder, name)
	if err := writeIndex(folder, base+".idx", p); err != nil {
		return "", fmt.Errorf("writing the index of a pack: %w", err)
	}
	if err := os.Rename(written, base+".pack"); err != nil {
		return "", fmt.Errorf("writing a pack: %w", err)
	}
	return name, nil
}

// remove removes a file; one that is gone is no error.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes what a crash left: unfinished files, and indexes without their
// packs, which would be taken for the whole when the pack comes again.
func Sweep(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, prefix+"*"))
	indexes, more := filepath.Glob(filepath.Join(folder, "pack-*.idx"))
	for _, file := range indexes {
		if _, missing := os.Stat(strings.TrimSuffix(file, ".idx") + ".pack"); errors.Is(missing, os.ErrNotExist) {
			left = append(left, file)
		}
	}
	err = errors.Join(err, more)
	for _, file := range left {
		err = errors.Join(err, remove(file))
	}
	return err
}

// endsIn makes sure that a file ends where its pack does.
func (p *pack) endsIn(file *os.File) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var sum plumbing.Hash
	if _, err := file.ReadAt(sum[:], size-int64(len(sum))); err != nil {
		return err
	}
	if sum != p.sum {
		return fmt.Errorf("%w: something follows it", packfile.ErrMalformedPackFile)
	}
	return nil
}

// pack is what an index says of a pack.
type pack struct {
	sum     plumbing.Hash
	entries []entry
	// refs are the entries that name what they are told by, in their order.
	refs []reference
}

// entry is one object of a pack.
type entry struct {
	// offset is where it stands in the file, size what it says of its length: of a
	// delta, the delta's.
	offset, size int64
	id           plumbing.Hash
	crc          uint32
	// base is the number of the entry that this one is told by.
	base int32
	kind plumbing.ObjectType
}

// nothing is the base of an entry that has none, or names it.
const nothing int32 = -1

// reference is an entry, by its number, with the id that it is told by.
type reference struct {
	number int32
	base   plumbing.Hash
}

// scan reads a pack once from its beginning to its end. Deltas have no id yet.
func scan(ctx context.Context, from io.Reader) (*pack, error) {
	s := packfile.NewScanner(from)
	_, count, err := s.Header()
	if err != nil {
		return nil, ended(err)
	}
	if count > mostObjects {
		return nil, fmt.Errorf("%w: the pack has %d objects, more than %d", ErrTooLarge, count, mostObjects)
	}
	p := &pack{entries: make([]entry, 0, min(count, 1<<18))} // the number may be a lie
	for range count {
		if err := p.next(ctx, s); err != nil {
			return nil, ended(err)
		}
	}
	if p.sum, err = s.Checksum(); err != nil {
		return nil, ended(err)
	}
	return p, nil
}

// next reads one object.
func (p *pack) next(ctx context.Context, s *packfile.Scanner) error {
	h, err := s.NextObjectHeader()
	if err != nil {
		return err
	}
	e := entry{offset: h.Offset, size: h.Length, base: nothing, kind: h.Type}
	var hasher plumbing.Hasher
	to := io.Discard
	switch h.Type {
	case plumbing.OFSDeltaObject:
		if e.base, err = p.at(h.OffsetReference); err != nil {
			return err
		}
	case plumbing.REFDeltaObject:
		p.refs = append(p.refs, reference{int32(len(p.entries)), h.Reference}) //nolint:gosec // at most mostObjects
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		hasher = plumbing.NewHasher(h.Type, h.Length)
		to = hasher
	default:
		return fmt.Errorf("%w: an object of the kind %d", packfile.ErrMalformedPackFile, h.Type)
	}
	if h.Type.IsDelta() && h.Length > mostDelta {
		return fmt.Errorf("%w: what tells one object from another has %d bytes, more than %d", ErrTooLarge, h.Length, mostDelta)
	}
	n, crc, err := s.NextObject(patient{ctx, to})
	if err != nil {
		return err
	}
	if n != h.Length {
		return fmt.Errorf("%w: an object of %d bytes says that it has %d", packfile.ErrMalformedPackFile, n, h.Length)
	}
	if !h.Type.IsDelta() {
		e.id = hasher.Sum()
	}
	e.crc = crc
	p.entries = append(p.entries, e)
	return nil
}

// at returns the number of the entry at an offset.
func (p *pack) at(offset int64) (int32, error) {
	low, high := 0, len(p.entries)
	for low < high {
		if mid := (low + high) / 2; p.entries[mid].offset < offset {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(p.entries) || p.entries[low].offset != offset {
		return nothing, fmt.Errorf("%w: an object is told by what is none", packfile.ErrMalformedPackFile)
	}
	return int32(low), nil
}

// ended words an end that comes too soon.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too soon", packfile.ErrMalformedPackFile)
	}
	return err
}

// patient passes on what is written until its context ends.
type patient struct {
	ctx context.Context //nolint:containedctx // the writer lives as long as one call
	io.Writer
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.Writer.Write(b)
}
