package fold

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

var start = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// at is a moment some minutes after the start.
func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

const (
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	commitC = "cccccccccccccccccccccccccccccccccccccccc"
)

func revision(commit string) string {
	if commit == "" {
		return ""
	}
	return "dev@sha1:" + commit
}

func ref(kind, name string) schema.ObjectRef {
	return schema.ObjectRef{Kind: kind, Namespace: "flux-system", Name: name}
}

func git(repo, folder string) schema.Source {
	return schema.Source{Type: schema.SourceGit, URL: "https://git.example/org/" + repo, Ref: "dev", Path: folder}
}

// edit changes a reconciler that a test is about to report.
type edit func(*schema.Reconciler)

func kustomization(name string, edits ...edit) schema.Reconciler {
	r := schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: name, Sources: []schema.Source{git("apps", name)}, Status: schema.StatusSuccess,
		Attempted: []string{revision(commitA)}, Applied: []string{revision(commitA)},
	}
	for _, e := range edits {
		e(&r)
	}
	return r
}

func status(s schema.Status, reason string) edit {
	return func(r *schema.Reconciler) { r.Status, r.Reason = s, reason }
}

func applies(commits ...string) edit {
	return func(r *schema.Reconciler) {
		r.Applied = nil
		for _, c := range commits {
			r.Applied = append(r.Applied, revision(c))
		}
		r.Attempted = r.Applied
	}
}

func attempts(commits ...string) edit {
	return func(r *schema.Reconciler) {
		r.Attempted = nil
		for _, c := range commits {
			r.Attempted = append(r.Attempted, revision(c))
		}
	}
}

func attemptedText(revs ...string) edit { return func(r *schema.Reconciler) { r.Attempted = revs } }

func sources(list ...schema.Source) edit {
	return func(r *schema.Reconciler) { r.Sources = append([]schema.Source{}, list...) }
}

func ownedBy(owner schema.ObjectRef) edit { return func(r *schema.Reconciler) { r.Owner = &owner } }

func ofKind(kind string) edit { return func(r *schema.Reconciler) { r.Kind = kind } }

func generation(observed bool) edit {
	return func(r *schema.Reconciler) { r.GenerationObserved = &observed }
}

func delta(sequence uint64, rs ...schema.Reconciler) *schema.Report {
	return &schema.Report{Epoch: 1, Sequence: sequence, Mode: schema.ModeDelta, ObservedAt: at(int(sequence)), Reconcilers: rs}
}

func removal(sequence uint64, gone ...schema.ObjectRef) *schema.Report {
	r := delta(sequence)
	r.Removed = gone
	return r
}

func snapshot(sequence uint64, kinds []string, rs ...schema.Reconciler) *schema.Report {
	r := delta(sequence, rs...)
	r.Mode, r.Kinds = schema.ModeSnapshot, kinds
	return r
}

func part(sequence uint64, number, of int, kinds []string, rs ...schema.Reconciler) *schema.Report {
	r := snapshot(sequence, kinds, rs...)
	r.Part, r.Parts = number, of
	return r
}

var kustomizations = []string{"Kustomization"}

// tell folds a report that must be valid.
func tell(t *testing.T, s *State, r *schema.Report) Changes {
	t.Helper()
	if err := r.Validate(); err != nil {
		t.Fatalf("the test's own report is not valid: %v", err)
	}
	r.Normalize()
	c := s.Apply("c1", r, r.ObservedAt)
	checkDigest(t, s)
	return c
}

// checkDigest holds the digest against all entries together.
func checkDigest(t *testing.T, s *State) {
	t.Helper()
	var want schema.Digest
	for _, e := range s.Entries {
		want.Toggle(e.Digest)
	}
	if s.Position.Digest != want {
		t.Fatalf("the state's digest is %s, that of its entries %s", s.Position.Digest, want)
	}
}

func names(s *State) map[string]bool {
	all := map[string]bool{}
	for r := range s.Entries {
		all[r.Kind+"/"+r.Name] = true
	}
	return all
}

func set(list ...string) map[string]bool {
	all := map[string]bool{}
	for _, s := range list {
		all[s] = true
	}
	return all
}

func upserts(c Changes) (changed, unchanged []string) {
	for _, u := range c.Upserts {
		if u.Changed {
			changed = append(changed, u.Reconciler.Name)
			continue
		}
		unchanged = append(unchanged, u.Reconciler.Name)
	}
	return changed, unchanged
}

func removed(c Changes) []string {
	var all []string
	for _, r := range c.Removals {
		all = append(all, r.Ref.Name)
	}
	return all
}

func endpointTexts(e *Entry) []string {
	var all []string
	for _, h := range e.Endpoints {
		all = append(all, h.Value().Repo+"#"+h.Value().Ref+":"+h.Value().Path)
	}
	return all
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
