package schema

import "strings"

// Revision is a revision as a reconciler wrote it, taken apart where it can be.
type Revision struct {
	// Raw is the text as it was reported; it is never dropped.
	Raw string
	// Ref is the branch, tag or other name before the digest; may be empty.
	Ref string
	// Algorithm is "sha1" or "sha256", or empty for plain text.
	Algorithm string
	// Hex is the digest in lower case, 40 or 64 digits, or empty.
	Hex string
}

// ParseRevision takes a revision apart: `main@sha1:<hex>`, `sha1:<hex>`,
// `latest@sha256:<hex>`, the legacy `main/<hex>`, and bare hex. It splits at
// the last `@`, because branch names may hold one. Anything else is kept as
// text in Raw.
func ParseRevision(s string) Revision {
	r := Revision{Raw: s}
	ref, digest := "", s
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		ref, digest = s[:i], s[i+1:]
	} else if i := strings.LastIndexByte(s, '/'); i >= 0 {
		ref, digest = s[:i], s[i+1:]
	}
	algorithm, hex := "", digest
	if i := strings.IndexByte(digest, ':'); i >= 0 {
		algorithm, hex = digest[:i], digest[i+1:]
	}
	hex, of := hexDigest(hex)
	if of == "" || (algorithm != "" && algorithm != of) {
		return r
	}
	r.Ref, r.Algorithm, r.Hex = ref, of, hex
	return r
}

// Commit returns the Git commit id that the revision of a source of type t
// names, in lower case, or "" when it names none: an OCI or bucket digest and a
// chart version are no commits.
func (r Revision) Commit(t SourceType) string {
	if t != SourceGit {
		return ""
	}
	return r.Hex
}

// IsCommit reports whether s is a full commit id: 40 or 64 hex digits.
func IsCommit(s string) bool {
	_, of := hexDigest(s)
	return of != ""
}

// hexDigest returns s in lower case and the algorithm its length belongs to,
// or "", "" when s is no digest.
func hexDigest(s string) (hex, algorithm string) {
	switch len(s) {
	case 40:
		algorithm = "sha1"
	case 64:
		algorithm = "sha256"
	default:
		return "", ""
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return "", ""
		}
	}
	return strings.ToLower(s), algorithm
}

// commitAt returns the Git commit that revs[i] names for the source i of the
// reconciler: the revision itself for Git, the origin's for other types.
// It returns "" where there is none.
func (r *Reconciler) commitAt(revs []string, i int) string {
	if i >= len(revs) || i >= len(r.Sources) {
		return ""
	}
	if r.Sources[i].Type == SourceGit {
		return ParseRevision(revs[i]).Hex
	}
	return ""
}

// AppliedCommit returns the Git commit that the reconciler runs from source i,
// or "". For a source that is not Git it is the origin's commit.
func (r *Reconciler) AppliedCommit(i int) string {
	if c := r.commitAt(r.Applied, i); c != "" {
		return c
	}
	if i < len(r.Sources) && r.Sources[i].Type != SourceGit && i < len(r.Origin) {
		return ParseRevision(r.Origin[i]).Hex
	}
	return ""
}

// AttemptedCommit returns the Git commit that the reconciler last tried from
// source i, or "".
func (r *Reconciler) AttemptedCommit(i int) string { return r.commitAt(r.Attempted, i) }

// Revision returns what is shown beside the reconciler for its ith source: the
// revision that was attempted, else the applied one, as they were written.
func (r *Reconciler) Revision(i int) string {
	for _, revs := range [][]string{r.Attempted, r.Applied} {
		if i < len(revs) && revs[i] != "" {
			return revs[i]
		}
	}
	return ""
}
