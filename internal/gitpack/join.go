package gitpack

import (
	"bufio"
	"cmp"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// Size returns the bytes and the number of the packs in a folder; none where it
// is not there.
func Size(folder string) (bytes int64, packs int, err error) {
	all, err := list(folder)
	for _, p := range all {
		bytes += p.size
	}
	return bytes, len(all), err
}

// Keep removes all packs of a folder but one.
func Keep(folder, name string) error {
	all, err := list(folder)
	for _, p := range all {
		if p.name != name {
			err = errors.Join(err, p.remove(folder))
		}
	}
	return err
}

// stored is a pack of a folder, its name without .pack.
type stored struct {
	name string
	size int64
}

// list returns the packs of a folder, the largest first.
func list(folder string) ([]stored, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []stored
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".pack")
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		all = append(all, stored{name, info.Size()})
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	return all, nil
}

// remove removes a pack before its index: one without an index cannot be read.
func (s stored) remove(folder string) error {
	base := filepath.Join(folder, s.name)
	if err := remove(base + ".pack"); err != nil {
		return err
	}
	return remove(base + ".idx")
}

// Join makes one pack of many where a folder has more than most, byte by byte:
// nothing that they hold is lost or looked at. The largest stay as they are, so
// that what was written once is written again a few times only. Those that were
// joined go when the new one is on the disk, and drop is called around that: it
// calls what it is given while nobody reads. A crash leaves the old ones, or
// both.
func Join(ctx context.Context, folder string, most int, drop func(func() error) error) (joined bool, err error) {
	all, err := list(folder)
	if err != nil || len(all) <= most {
		return false, err
	}
	small := tail(all)
	if len(small) < 2 {
		return false, nil
	}
	j := joiner{folder: folder}
	written, err := j.write(ctx, small)
	if err != nil {
		return false, fmt.Errorf("joining %d packs: %w", len(small), err)
	}
	name, err := publish(folder, written, &j.pack)
	if err = errors.Join(err, syncFolder(folder)); err != nil {
		return false, errors.Join(fmt.Errorf("joining %d packs: %w", len(small), err), remove(written))
	}
	return true, drop(func() error {
		var err error
		for _, p := range small {
			if p.name != name {
				err = errors.Join(err, p.remove(folder))
			}
		}
		return err
	})
}

// syncFolder has the names in a folder reach the disk.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// tail returns those packs that are to be joined: all but the large ones of which
// each has twice as much as what is smaller together.
func tail(all []stored) []stored {
	rest := int64(0)
	for _, p := range all {
		rest += p.size
	}
	for i, p := range all {
		if rest -= p.size; p.size < 2*rest {
			return all[i:]
		}
	}
	return nil
}

// ErrDamaged is what an error wraps that is about a pack which is not what it was.
var ErrDamaged = errors.New("a pack is damaged")

// The parts of a pack that are no objects: a head with their number, and a sum.
const (
	headSize = 12
	sumSize  = 20
)

// joiner puts packs one after the other. What a delta tells another from stands
// in the same pack, at the same distance before it or by its id: it stays right.
type joiner struct {
	pack
	folder string
	// taken are the indexes of the packs that were put in.
	taken []*idxfile.MemoryIndex
	count uint32
	end   int64
}

// write writes the new pack to a file and returns its name.
func (j *joiner) write(ctx context.Context, packs []stored) (name string, err error) {
	file, err := os.CreateTemp(j.folder, prefix+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, remove(file.Name()))
		}
	}()
	j.end = headSize
	if _, err := file.Seek(headSize, io.SeekStart); err != nil {
		return "", err
	}
	for _, p := range packs {
		if err := j.add(ctx, file, p); err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), j.count)
	if _, err := file.WriteAt(head, 0); err != nil {
		return "", err
	}
	if err := j.finish(ctx, file); err != nil {
		return "", err
	}
	return file.Name(), file.Sync()
}

// finish writes the sum of all that stands before it.
func (j *joiner) finish(ctx context.Context, file *os.File) error {
	sum := hash.New(crypto.SHA1)
	if _, err := io.Copy(patient{ctx, sum}, io.NewSectionReader(file, 0, j.end)); err != nil {
		return err
	}
	copy(j.sum[:], sum.Sum(nil))
	_, err := file.WriteAt(j.sum[:], j.end)
	return err
}

// add puts one pack at the end, unless what it holds is there already: a crash
// may have left it beside what it was joined into.
func (j *joiner) add(ctx context.Context, to io.Writer, p stored) error {
	index, err := readIndex(filepath.Join(j.folder, p.name+".idx"))
	if err != nil {
		return err
	}
	if held, err := j.holds(index); held || err != nil {
		return err
	}
	from, err := os.Open(filepath.Join(j.folder, p.name+".pack"))
	if err != nil {
		return err
	}
	defer from.Close()
	count, err := j.copy(ctx, to, from, p, index.PackfileChecksum)
	if err != nil {
		return err
	}
	if int64(count)+int64(j.count) > math.MaxInt32 {
		return fmt.Errorf("%w: the packs have more than %d objects", ErrTooLarge, math.MaxInt32)
	}
	if err := j.note(index); err != nil {
		return err
	}
	j.taken = append(j.taken, index)
	j.count += count
	j.end += p.size - headSize - sumSize
	return nil
}

// copy copies the objects of a pack, which must be whole.
func (j *joiner) copy(ctx context.Context, to io.Writer, from *os.File, p stored, want plumbing.Hash) (count uint32, err error) {
	if p.size < headSize+sumSize {
		return 0, fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	var head [headSize]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, err
	}
	sum := hash.New(crypto.SHA1)
	sum.Write(head[:])
	objects := io.LimitReader(bufio.NewReaderSize(from, 256<<10), p.size-headSize-sumSize)
	if _, err := io.Copy(patient{ctx, io.MultiWriter(to, sum)}, objects); err != nil {
		return 0, err
	}
	if string(head[:8]) != "PACK\x00\x00\x00\x02" || plumbing.Hash(sum.Sum(nil)) != want {
		return 0, fmt.Errorf("%w: it has another sum", ErrDamaged)
	}
	return binary.BigEndian.Uint32(head[8:]), nil
}

// note adds what an index says, at the new places.
func (j *joiner) note(index *idxfile.MemoryIndex) error {
	entries, err := index.Entries()
	if err != nil {
		return err
	}
	for {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		j.entries = append(j.entries, entry{offset: int64(e.Offset) - headSize + j.end, id: e.Hash, crc: e.CRC32}) //nolint:gosec // a file is not that long
	}
}

// holds reports whether all that an index names is in the packs so far.
func (j *joiner) holds(index *idxfile.MemoryIndex) (bool, error) {
	entries, err := index.Entries()
	if err != nil {
		return false, err
	}
	for {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(j.taken, func(t *idxfile.MemoryIndex) bool {
			found, err := t.Contains(e.Hash)
			return found && err == nil
		}) {
			return false, nil
		}
	}
}

func readIndex(name string) (*idxfile.MemoryIndex, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	index := idxfile.NewMemoryIndex()
	return index, idxfile.NewDecoder(bufio.NewReader(f)).Decode(index)
}
