package gitpack

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/hash"
)

// writeIndex writes the index of a pack to a file, which appears whole. The
// entries are in the order of their ids afterwards.
func writeIndex(folder, name string, p *pack) (err error) {
	file, err := os.CreateTemp(folder, prefix+"*")
	if err != nil {
		return err
	}
	slices.SortFunc(p.entries, func(a, b entry) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.offset, b.offset))
	})
	err = encodeIndex(file, p)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	return errors.Join(err, remove(file.Name()))
}

// encodeIndex writes version 2 of Git's format: how many ids there are up to each
// first byte, ids, sums and offsets in the order of the ids, and the offsets that
// need more than 31 bits.
func encodeIndex(file io.Writer, p *pack) error {
	sum := hash.New(crypto.SHA1)
	w := bufio.NewWriterSize(io.MultiWriter(file, sum), 64<<10)
	var fan [256]uint32
	for i := range p.entries {
		fan[p.entries[i].id[0]]++
	}
	for i := 1; i < len(fan); i++ {
		fan[i] += fan[i-1]
	}
	// A buffered writer keeps its first error.
	put := func(v uint32) { _, _ = w.Write(binary.BigEndian.AppendUint32(w.AvailableBuffer(), v)) }
	put(0xff744f63)
	put(2)
	for _, n := range fan[:] {
		put(n)
	}
	for i := range p.entries {
		_, _ = w.Write(p.entries[i].id[:])
	}
	for i := range p.entries {
		put(p.entries[i].crc)
	}
	var far []uint64
	for i := range p.entries {
		at := uint32(p.entries[i].offset) //nolint:gosec // those beyond 31 bits follow
		if p.entries[i].offset > math.MaxInt32 {
			at = 1<<31 | uint32(len(far)) //nolint:gosec // at most mostObjects
			far = append(far, uint64(p.entries[i].offset))
		}
		put(at)
	}
	for _, at := range far {
		put(uint32(at >> 32))
		put(uint32(at & math.MaxUint32))
	}
	_, _ = w.Write(p.sum[:])
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := file.Write(sum.Sum(nil))
	return err
}
