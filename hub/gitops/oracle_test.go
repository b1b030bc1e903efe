package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// oracle knows what plain git says of a repository. It is written apart from the
// implementation, for being obviously right: each answer is what a command
// printed.
type oracle struct {
	tb  testing.TB
	dir string
	// fetched are the commits that some fetch has brought.
	fetched map[string]bool
	// heads are the branches as the last fetch found them.
	heads map[string]string

	below map[string]map[string]bool
	spots map[string]string
	outs  map[string]bool
	asked int
}

func newOracle(tb testing.TB, dir string) *oracle {
	tb.Helper()
	return &oracle{
		tb: tb, dir: dir, fetched: map[string]bool{}, heads: map[string]string{},
		below: map[string]map[string]bool{}, spots: map[string]string{}, outs: map[string]bool{},
	}
}

func (o *oracle) git(args ...string) string {
	o.tb.Helper()
	return git(o.tb, o.dir, nil, args...)
}

// fetch takes note of what a fetch of all branches brings now.
func (o *oracle) fetch() {
	o.tb.Helper()
	for line := range strings.Lines(o.git("rev-list", "--branches")) {
		o.fetched[strings.TrimSpace(line)] = true
	}
	o.heads = map[string]string{}
	for line := range strings.Lines(o.git("for-each-ref", "refs/heads", "--format=%(refname:lstrip=2) %(objectname)")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		o.heads[name] = id
	}
}

// reaches reports whether b is a or comes before it, as rev-list says; one in a
// hundred is asked of merge-base too.
func (o *oracle) reaches(a, b string) bool {
	o.tb.Helper()
	below, ok := o.below[a]
	if !ok {
		below = map[string]bool{}
		for line := range strings.Lines(o.git("rev-list", a)) {
			below[strings.TrimSpace(line)] = true
		}
		o.below[a] = below
	}
	o.asked++
	if o.asked%100 == 0 {
		_, err := tryGit(o.dir, nil, "merge-base", "--is-ancestor", b, a)
		failed, _ := errors.AsType[*exec.ExitError](err)
		if err != nil && (failed == nil || failed.ExitCode() != 1) || below[b] != (err == nil) {
			o.tb.Fatalf("rev-list says that %s leads to %s: %t; merge-base: %v", a, b, below[b], err)
		}
	}
	return below[b]
}

// spot is what `git rev-parse COMMIT:PATH` prints, with the kind of object; ""
// where there is nothing. Of a path over a link it is the link.
func (o *oracle) spot(commit, folder string) string {
	o.tb.Helper()
	for i := range folder {
		if folder[i] != '/' {
			continue
		}
		if found := o.entry(commit, folder[:i]); strings.HasPrefix(found, "120000") {
			return found
		}
	}
	return o.entry(commit, folder)
}

// entry is a line of ls-tree for a path, or the root's id; one in ten is asked of
// rev-parse too.
func (o *oracle) entry(commit, folder string) string {
	o.tb.Helper()
	key := commit + ":" + folder
	found, ok := o.spots[key]
	if !ok {
		if folder == "" {
			found = o.git("rev-parse", commit+"^{tree}")
		} else {
			found = o.git("ls-tree", commit, "--", folder)
			if len(o.spots)%10 == 0 {
				if id, err := tryGit(o.dir, nil, "rev-parse", "--verify", "--quiet", key); (err == nil) != (found != "") || !strings.Contains(found, id) {
					o.tb.Fatalf("%s: ls-tree says %q, rev-parse %q, %v", key, found, id, err)
				}
			}
		}
		o.spots[key] = found
	}
	return found
}

// sameAll compares paths at two commits.
func (o *oracle) sameAll(a, b string, folders ...string) bool {
	o.tb.Helper()
	return !slices.ContainsFunc(folders, func(f string) bool { return o.spot(a, f) != o.spot(b, f) })
}

// leadsOut reports whether a folder has a link anywhere, or a kustomization
// right in it that names something above. The histories here have no others.
func (o *oracle) leadsOut(commit, folder string) bool {
	o.tb.Helper()
	key := commit + ":" + folder
	out, ok := o.outs[key]
	if ok {
		return out
	}
	for i := range folder + "/" {
		if at := folder[:i]; (i == len(folder) || folder[i] == '/') && strings.HasPrefix(o.entry(commit, at), "120000") {
			return true
		}
	}
	list := []string{"ls-tree", "-r", commit}
	if folder != "" {
		list = append(list, "--", folder+"/")
	}
	files := 0
	for line := range strings.Lines(o.git(list...)) {
		about, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files++
		switch {
		case strings.HasPrefix(about, "120000"):
			out = true
		case path.Base(name) == "kustomization.yaml":
			climbs := strings.Count(o.git("show", commit+":"+name), "../")
			below := strings.TrimPrefix(strings.TrimPrefix(path.Dir(name), folder), "/")
			depth := 0
			if below != "" && below != "." {
				depth = strings.Count(below, "/") + 1
			}
			out = out || climbs > depth
		}
	}
	out = out || files == 0 && folder != "" // nobody reads a folder that is not there
	o.outs[key] = out
	return out
}

// step is what a reconciler said at a minute.
type step struct {
	applied, attempted string
	status             schema.Status
	minute             int
}

// subject is a reconciler with what it said, in order.
type subject struct {
	folders []string
	steps   []step
}

// The outcomes from bad to good.
var severity = []schema.Outcome{
	schema.OutcomeFailed, schema.OutcomeUnknown, schema.OutcomeUnknownLineage, schema.OutcomePending, schema.OutcomeInProgress, schema.OutcomeSuspended, schema.OutcomeCompliant,
}

// judge works out what a reconciler is for a commit, a folder at a time, by
// going through domain.md's table from the top.
func (o *oracle) judge(s subject, commit, asked string, minute int) (worst schema.Outcome, why string) {
	o.tb.Helper()
	worst = schema.OutcomeCompliant
	first := true
	for _, folder := range slices.Sorted(slices.Values(s.folders)) {
		if asked != "" && folder != asked && !strings.HasPrefix(folder, asked+"/") {
			continue
		}
		outcome, reason := o.row(s, commit, folder, minute)
		if first || slices.Index(severity, outcome) < slices.Index(severity, worst) {
			worst, why = outcome, reason
		}
		first = false
	}
	return worst, why
}

// row is the row of the table that holds for one folder.
func (o *oracle) row(s subject, commit, folder string, minute int) (schema.Outcome, string) {
	o.tb.Helper()
	now := s.steps[len(s.steps)-1]
	known := func(c string) bool { return o.fetched[c] }
	// after: a is the commit or comes after it; before: the other way round.
	after := func(a string) bool { return a == commit || known(a) && known(commit) && o.reaches(a, commit) }
	before := func(a string) bool {
		return a != commit && known(a) && known(commit) && o.reaches(commit, a)
	}
	apart := func(a string) bool { return known(a) && known(commit) && !after(a) && !before(a) }

	status, attempted := now.status, now.attempted
	if status == schema.StatusFailure && attempted == "" {
		status = schema.StatusInProgress
		if minute-now.minute >= 5 {
			status, attempted = schema.StatusFailure, o.heads["main"]
		}
	}
	if now.status == schema.StatusUnknown {
		return schema.OutcomeUnknown, "unknown"
	}

	// Reverted.
	if now.applied != commit && after(now.applied) {
		parents := strings.Fields(o.git("rev-list", "--parents", "-n", "1", commit))[1:]
		if len(parents) > 0 {
			if !o.sameAll(commit, parents[0], folder) && o.sameAll(now.applied, parents[0], folder) {
				return schema.OutcomeFailed, "reverted"
			}
		}
	}
	// Success seen at or after the commit, since it was last left.
	for i := len(s.steps) - 1; i >= 0 && after(s.steps[i].applied); i-- {
		if s.steps[i].status == schema.StatusSuccess {
			return schema.OutcomeCompliant, ""
		}
	}
	// Not affected.
	if before(now.applied) && status == schema.StatusSuccess {
		read := []string{folder}
		for at := folder; at != "" && at != "."; {
			at = path.Dir(at)
			read = append(read, path.Join(at, ".sourceignore"))
		}
		if o.sameAll(now.applied, commit, read...) && !o.leadsOut(commit, folder) {
			return schema.OutcomeCompliant, ""
		}
	}
	if status == schema.StatusSuspended {
		return schema.OutcomeSuspended, "suspended"
	}
	if after(now.applied) || attempted != "" && after(attempted) {
		switch status {
		case schema.StatusFailure:
			return schema.OutcomeFailed, string(now.status)
		case schema.StatusPending:
			return schema.OutcomePending, string(now.status)
		case schema.StatusSuccess:
			return schema.OutcomeInProgress, "no success at this commit yet"
		}
		return schema.OutcomeInProgress, string(now.status)
	}
	switch {
	case now.applied == "" && attempted == "":
		return schema.OutcomePending, "never applied"
	case before(now.applied) || before(attempted):
		for _, s := range s.steps {
			if s.applied != "" && after(s.applied) {
				return schema.OutcomePending, "rolled back"
			}
		}
		return schema.OutcomePending, "not fetched"
	case apart(now.applied) || apart(attempted):
		return schema.OutcomeUnknownLineage, "its commit and this one are not related"
	}
	return schema.OutcomeUnknownLineage, "its commit or this one is not in the mirror"
}

// describe says what a case was, for a failure's message.
func (s subject) describe() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "folders %q\n", s.folders)
	for _, st := range s.steps {
		fmt.Fprintf(&b, "  minute %d: %s, applied %.8s, attempted %.8s\n", st.minute, st.status, st.applied, st.attempted)
	}
	return b.String()
}

// layout is what a commit's files are, for the author of the next one.
type layout map[string]string

func (l layout) with(changes map[string]string) layout {
	next := maps.Clone(l)
	if next == nil {
		next = layout{}
	}
	for name, text := range changes {
		next[name] = text
		if text == "" {
			delete(next, name)
		}
	}
	return next
}

// changesTo returns what makes l the other one below a folder.
func (l layout) changesTo(other layout, folder string) map[string]string {
	changes := map[string]string{}
	for name := range l {
		if schema.PathWithin(folder, name) && other[name] == "" {
			changes[name] = ""
		}
	}
	for name, text := range other {
		if schema.PathWithin(folder, name) && l[name] != text {
			changes[name] = text
		}
	}
	return changes
}

// start is the moment of minute 0.
var start = time.Date(2026, time.November, 21, 9, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
