package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Digest is the fingerprint of one reconciler's state, or of a set of them:
// 16 bytes. The digest of a set is the exclusive or of its members' digests,
// so that both sides can keep it up to date with each change; the digest of
// nothing is all zeroes.
type Digest [16]byte

// String returns the digest as 32 lower-case hex digits, as heartbeats carry it.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Toggle adds a member to a set's digest, or takes it out.
func (d *Digest) Toggle(member Digest) {
	for i := range d {
		d[i] ^= member[i]
	}
}

// ParseDigest reads what String writes.
func ParseDigest(s string) (Digest, bool) {
	var d Digest
	if len(s) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err == nil
}

// Digest returns the reconciler's fingerprint: the first 16 bytes of the
// SHA-256 of its members in a fixed order. The message must be normalized (see
// Report.Normalize). Times are no part of it.
//
// Byte by byte: a text is its length in bytes as a 4-byte big-endian number,
// then its UTF-8 bytes; a list is its number of items in the same form, then
// the items; a boolean is one byte, 0 or 1. In order: kind, namespace, name,
// cluster (texts); sources (a list, each: type, url, ref, path); status,
// reason, message (texts); attempted, applied, origin (lists of texts);
// source_revision, source_error (texts); generation_observed (one byte: 0
// false, 1 true, 2 absent); health (text); suspended, drifted (booleans);
// owner (one byte, 0 absent or 1, then kind, namespace, name).
func (r *Reconciler) Digest() Digest {
	w := digestWriter{buf: make([]byte, 0, 1024)}
	w.texts3(r.Kind, r.Namespace, r.Name)
	w.text(r.Cluster)
	w.length(len(r.Sources))
	for i := range r.Sources {
		s := &r.Sources[i]
		w.texts3(string(s.Type), s.URL, s.Ref)
		w.text(s.Path)
	}
	w.texts3(string(r.Status), r.Reason, r.Message)
	w.list(r.Attempted)
	w.list(r.Applied)
	w.list(r.Origin)
	w.text(r.SourceRevision)
	w.text(r.SourceError)
	switch {
	case r.GenerationObserved == nil:
		w.byte(2)
	default:
		w.bool(*r.GenerationObserved)
	}
	w.text(r.Health)
	w.bool(r.Suspended)
	w.bool(r.Drifted)
	w.bool(r.Owner != nil)
	if r.Owner != nil {
		w.texts3(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name)
	}
	sum := sha256.Sum256(w.buf)
	return Digest(sum[:16])
}

// digestWriter gathers the serialization.
type digestWriter struct{ buf []byte }

func (w *digestWriter) byte(b byte) { w.buf = append(w.buf, b) }

func (w *digestWriter) bool(b bool) {
	if b {
		w.byte(1)
		return
	}
	w.byte(0)
}

func (w *digestWriter) length(n int) {
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(n)) //nolint:gosec // messages are far below 4 GiB
}

func (w *digestWriter) text(s string) {
	w.length(len(s))
	w.buf = append(w.buf, s...)
}

func (w *digestWriter) texts3(a, b, c string) {
	w.text(a)
	w.text(b)
	w.text(c)
}

func (w *digestWriter) list(items []string) {
	w.length(len(items))
	for _, s := range items {
		w.text(s)
	}
}
