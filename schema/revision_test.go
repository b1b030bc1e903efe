package schema_test

import (
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

var (
	commit40 = strings.Repeat("0123456789", 4)
	commit64 = strings.Repeat("0123abcd", 8)
)

func TestParseRevision(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   schema.Revision
	}{
		"Branch":              {reason: "The common form.", in: "main@sha1:" + commit40, want: schema.Revision{Ref: "main", Algorithm: "sha1", Hex: commit40}},
		"BranchWithSlash":     {reason: "Branches hold slashes.", in: "feature/x@sha1:" + commit40, want: schema.Revision{Ref: "feature/x", Algorithm: "sha1", Hex: commit40}},
		"BranchWithAt":        {reason: "The last @ splits.", in: "user@home@sha1:" + commit40, want: schema.Revision{Ref: "user@home", Algorithm: "sha1", Hex: commit40}},
		"PullRequest":         {reason: "A full ref.", in: "refs/pull/4/head@sha1:" + commit40, want: schema.Revision{Ref: "refs/pull/4/head", Algorithm: "sha1", Hex: commit40}},
		"NoRef":               {reason: "A digest alone.", in: "sha1:" + commit40, want: schema.Revision{Algorithm: "sha1", Hex: commit40}},
		"Legacy":              {reason: "The form before Flux 2.", in: "main/" + commit40, want: schema.Revision{Ref: "main", Algorithm: "sha1", Hex: commit40}},
		"LegacyWithSlash":     {reason: "Split at the last slash.", in: "feature/x/" + commit40, want: schema.Revision{Ref: "feature/x", Algorithm: "sha1", Hex: commit40}},
		"LegacyOrigin":        {reason: "A legacy origin with a digest.", in: "main/sha1:" + commit40, want: schema.Revision{Ref: "main", Algorithm: "sha1", Hex: commit40}},
		"BareHex":             {reason: "Argo CD.", in: commit40, want: schema.Revision{Algorithm: "sha1", Hex: commit40}},
		"UpperCase":           {reason: "Digests are kept in lower case.", in: strings.ToUpper(strings.Repeat("abcd", 10)), want: schema.Revision{Algorithm: "sha1", Hex: strings.Repeat("abcd", 10)}},
		"SHA256Repository":    {reason: "64 digits.", in: "main@sha256:" + commit64, want: schema.Revision{Ref: "main", Algorithm: "sha256", Hex: commit64}},
		"OCI":                 {reason: "An OCI tag.", in: "latest@sha256:" + commit64, want: schema.Revision{Ref: "latest", Algorithm: "sha256", Hex: commit64}},
		"WrongLength":         {reason: "A sha1 of 64 digits is none.", in: "main@sha1:" + commit64},
		"WrongAlgorithm":      {reason: "A sha256 of 40 digits is none.", in: "main@sha256:" + commit40},
		"UnknownAlgorithm":    {reason: "Text.", in: "main@md5:" + commit40},
		"Chart":               {reason: "A chart version is text.", in: "6.5.4"},
		"ChartWithBuild":      {reason: "Text.", in: "6.5.4+abc"},
		"ChartWithDigest":     {reason: "A short digest is no digest.", in: "6.5.4@8a1b"},
		"ShortHex":            {reason: "An abbreviated commit is no commit.", in: "0123abc"},
		"BranchAlone":         {reason: "Argo CD's ComparisonError names a branch.", in: "main"},
		"NotHex":              {reason: "40 letters are no digest.", in: strings.Repeat("g", 40)},
		"Empty":               {reason: "Nothing known.", in: ""},
		"EmptyDigest":         {reason: "Text.", in: "main@"},
		"FortyDigitsAsBranch": {reason: "A branch that looks like a commit.", in: commit40 + "@sha1:" + commit40, want: schema.Revision{Ref: commit40, Algorithm: "sha1", Hex: commit40}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.Raw = c.in // never dropped
			if got := schema.ParseRevision(c.in); got != c.want {
				t.Errorf("%s\nwant %+v\ngot  %+v", c.reason, c.want, got)
			}
		})
	}
}

func TestRevisionCommit(t *testing.T) {
	r := schema.ParseRevision("main@sha1:" + commit40)
	for source, want := range map[schema.SourceType]string{schema.SourceGit: commit40, schema.SourceOCI: "", schema.SourceHelm: "", schema.SourceBucket: ""} {
		if got := r.Commit(source); got != want {
			t.Errorf("%s: want %q, got %q", source, want, got)
		}
	}
}

func TestReconcilerCommits(t *testing.T) {
	other := strings.Repeat("ab", 20)
	r := schema.Reconciler{
		Sources:   []schema.Source{{Type: schema.SourceGit}, {Type: schema.SourceOCI}, {Type: schema.SourceHelm}, {Type: schema.SourceGit}},
		Applied:   []string{"main@sha1:" + commit40, "latest@sha256:" + commit64, "1.2.3"},
		Attempted: []string{"main@sha1:" + other, "latest@sha256:" + commit64},
		Origin:    []string{"main@sha1:" + other, "main/" + other},
	}
	for i, want := range []struct{ applied, attempted string }{{commit40, other}, {other, ""}, {"", ""}, {"", ""}, {"", ""}} {
		if got := r.AppliedCommit(i); got != want.applied {
			t.Errorf("applied %d: want %q, got %q", i, want.applied, got)
		}
		if got := r.AttemptedCommit(i); got != want.attempted {
			t.Errorf("attempted %d: want %q, got %q", i, want.attempted, got)
		}
	}
}

func TestIsCommit(t *testing.T) {
	for in, want := range map[string]bool{commit40: true, commit64: true, strings.ToUpper(commit64): true, commit40[:39]: false, commit40 + "0": false, "": false, strings.Repeat("x", 40): false} {
		if got := schema.IsCommit(in); got != want {
			t.Errorf("%q: want %v", in, want)
		}
	}
}

func FuzzParseRevision(f *testing.F) {
	for _, s := range []string{"main@sha1:" + commit40, "feature/x@sha1:" + commit40, "refs/pull/4/head@sha1:" + commit40, "sha1:" + commit40, "main/" + commit40, commit40, "latest@sha256:" + commit64, "6.5.4", "main", "", "@:", "a@b@sha1:" + commit40} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := schema.ParseRevision(s)
		if r.Raw != s {
			t.Fatalf("the text was changed: %q", r.Raw)
		}
		if r.Hex == "" {
			if r.Ref != "" || r.Algorithm != "" {
				t.Fatalf("parts of a revision that has none: %+v", r)
			}
			return
		}
		if !schema.IsCommit(r.Hex) || r.Hex != strings.ToLower(r.Hex) || !strings.HasSuffix(strings.ToLower(s), r.Hex) {
			t.Fatalf("%q holds no digest %q", s, r.Hex)
		}
		if (r.Algorithm == "sha1") != (len(r.Hex) == 40) || !strings.HasPrefix(s, r.Ref) {
			t.Fatalf("%q: %+v", s, r)
		}
		again := schema.ParseRevision(r.Ref + "@" + r.Algorithm + ":" + r.Hex)
		if again.Ref != r.Ref || again.Hex != r.Hex || again.Algorithm != r.Algorithm {
			t.Fatalf("%+v written out and read again is %+v", r, again)
		}
	})
}
