package main

import (
	"cmp"
	"iter"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfall-hub/landfall/schema"
)

// collect reads a whole list.
func collect[T any](t *testing.T, rows iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

// versions reads from Git, without the hub, which version a commit has of a
// target.
type versions struct {
	t     *testing.T
	repo  string
	known map[string]string
}

func (v *versions) of(target, commit string) string {
	v.t.Helper()
	key := target + "@" + commit
	if _, ok := v.known[key]; !ok {
		out, err := exec.CommandContext(v.t.Context(), "git", "-C", v.repo, "show", commit+":descriptors/"+target+".yaml").Output()
		if err != nil {
			v.t.Fatalf("git show %s: %v", key, err)
		}
		for line := range strings.Lines(string(out)) {
			if name, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name == "version" {
				v.known[key] = text
			}
		}
	}
	return v.known[key]
}

// committed returns when a commit was made.
func (v *versions) committed(commit string) time.Time {
	v.t.Helper()
	out, err := exec.CommandContext(v.t.Context(), "git", "-C", v.repo, "show", "-s", "--format=%cI", commit).Output()
	if err != nil {
		v.t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(out)))
	if err != nil {
		v.t.Fatal(err)
	}
	return at
}

// brought returns the first commit of the branch that has a version.
func (v *versions) brought(target, version string) string {
	v.t.Helper()
	out, err := exec.CommandContext(v.t.Context(), "git", "-C", v.repo, "rev-list", "--first-parent", "--reverse", branch).Output()
	if err != nil {
		v.t.Fatal(err)
	}
	for commit := range strings.FieldsSeq(string(out)) {
		if v.of(target, commit) == version {
			return commit
		}
	}
	v.t.Fatalf("no commit brought %s of %s", version, target)
	return ""
}

// names asks the hub for everything that it says of hello-world, after a rollback,
// and computes the same from what was reported and from Git, by plain loops.
func (w *world) names(t *testing.T) {
	client := w.client
	back, err := w.repos.release(t.Context(), "1.1.0", 512) // a deliberate rollback
	if err != nil {
		t.Fatal(err)
	}
	git := &versions{t: t, repo: w.repos.path(application), known: map[string]string{}}
	named := schema.StateFilter{Workload: "hello-world-app"}
	// Both targets, all twelve hosts: the gate would not do, it passes before the
	// hosts whose folder the rollback leaves as it was have taken it. And the hub
	// must have read the commit: until then, a version is called after it.
	late := func(row schema.ClusterState) bool { return row.Commit != back || row.Version == back }
	states := collect(t, client.ClusterStates(t.Context(), named, 100))
	for slices.ContainsFunc(states, late) {
		states = collect(t, client.ClusterStates(t.Context(), named, 100))
	}
	history := collect(t, client.History(t.Context(), schema.HistoryFilter{StateFilter: named}, 100))
	slices.Reverse(history)
	slices.SortStableFunc(history, func(a, b schema.HistoryEntry) int { return a.ReceivedAt.Compare(b.ReceivedAt) })

	// What runs: the hosts by their folders.
	if len(states) != 12 {
		t.Errorf("%d reconcilers have a name, want 12", len(states))
	}
	deployed := map[string]map[schema.Deployed]uint64{}
	for _, row := range states {
		if row.DeploymentTarget != row.Path || row.Environment != branch || row.Workspace != "kaizen-app-team" || row.Application != "greeting-service" {
			t.Errorf("%s is called %s/%s/%s/%s in %s", row.Path, row.Workspace, row.Application, row.Workload, row.DeploymentTarget, row.Environment)
		}
		d := schema.Deployed{Version: git.of(row.Path, row.Commit), Commit: row.Commit, Status: row.Status, ConfigVersion: w.configuration(t, row.Cluster, row.Path)}
		if row.Version != d.Version || row.ConfigVersion != d.ConfigVersion {
			t.Errorf("%s runs %s with %q at %s, Git says %s with %q", row.Cluster, row.Version, row.ConfigVersion, row.Commit, d.Version, d.ConfigVersion)
		}
		if deployed[row.Path] == nil {
			deployed[row.Path] = map[schema.Deployed]uint64{}
		}
		deployed[row.Path][d]++
	}
	for _, row := range collect(t, client.EnvironmentStates(t.Context(), named, 100)) {
		want := map[schema.Deployed]uint64{}
		maps.Copy(want, deployed[row.DeploymentTarget])
		for _, d := range row.Deployed {
			count := d.Clusters
			d.Clusters = 0
			if want[d] != count {
				t.Errorf("%s: %+v on %d clusters, want %d", row.DeploymentTarget, d, count, want[d])
			}
			delete(want, d)
		}
		if len(want) > 0 {
			t.Errorf("%s lacks %v", row.DeploymentTarget, want)
		}
		version, config := git.of(row.DeploymentTarget, back), w.scheduled(t, row.DeploymentTarget)
		if row.ScheduledVersion != version || row.ScheduledConfigVersion != config {
			t.Errorf("%s: %s with %q is scheduled, want %s with %q", row.DeploymentTarget, row.ScheduledVersion, row.ScheduledConfigVersion, version, config)
		}
	}
	for _, list := range []int{
		len(collect(t, client.Drift(t.Context(), schema.DriftFilter{StateFilter: named}, 100))),
		len(collect(t, client.Discrepancies(t.Context(), schema.DiscrepancyFilter{StateFilter: named}, 100))),
	} {
		if list != 0 {
			t.Errorf("everything is as desired, and %d rows say otherwise", list)
		}
	}

	// What was: by target.
	to := time.Now().Add(time.Minute)
	span := schema.Span{From: to.Add(-time.Hour), To: to}
	for _, row := range collect(t, client.DORA(t.Context(), schema.DORAFilter{StateFilter: named, Span: span}, 100)) {
		want := figures(git, history, row.DeploymentTarget)
		want.Target, want.From, want.To = row.Target, row.From, row.To
		want.DeploymentsPerDay = float64(want.Deployments) * 24
		if diff := gocmp.Diff(want, row, cmpopts.EquateApprox(0, 0.002)); diff != "" {
			t.Errorf("the figures of %s (-computed +hub):\n%s", row.DeploymentTarget, diff)
		}
		if row.DeploymentTarget == "functional-test" && (row.Rollbacks == 0 || row.FailedCommits != 1) {
			t.Errorf("a version that failed and one that came back are not seen: %+v", row)
		}
	}
}

// figures computes what is known of a target, from the oldest row on.
func figures(git *versions, history []schema.HistoryEntry, target string) schema.DORA {
	git.t.Helper()
	var f schema.DORA
	landed := map[string]time.Time{} // first success of a version
	tried, failed := map[string]bool{}, map[string]bool{}
	had, last := map[string]map[string]bool{}, map[string]string{}
	wentBack := map[string]map[string]uint64{} // version, cluster
	since := map[string]time.Time{}            // of what fails
	var restored []float64
	for _, row := range history {
		if row.Path != target {
			continue
		}
		at := row.ObservedAt
		if row.ReceivedAt.Before(at) {
			at = row.ReceivedAt
		}
		rollback := false
		switch row.Status {
		case schema.StatusSuccess:
			version := git.of(target, row.Commit)
			tried[row.Commit] = true
			if first, ok := landed[version]; !ok || at.Before(first) {
				landed[version] = at
			}
			if had[row.Cluster] == nil {
				had[row.Cluster] = map[string]bool{}
			}
			if before := last[row.Cluster]; before != "" && before != version && had[row.Cluster][version] {
				rollback = true
				if wentBack[version] == nil {
					wentBack[version] = map[string]uint64{}
				}
				wentBack[version][row.Cluster]++
			}
			had[row.Cluster][version], last[row.Cluster] = true, version
			if began, ok := since[row.Cluster]; ok {
				restored = append(restored, at.Sub(began).Seconds())
				delete(since, row.Cluster)
			}
		case schema.StatusFailure:
			tried[row.AttemptedCommit], failed[row.AttemptedCommit] = true, true
			if _, ok := since[row.Cluster]; !ok {
				since[row.Cluster] = at
			}
		}
		if row.Rollback != rollback {
			git.t.Errorf("%s at %s: rollback is %t, want %t", row.Cluster, row.Commit, row.Rollback, rollback)
		}
	}
	f.Deployments, f.Commits, f.FailedCommits, f.Unrestored = uint64(len(landed)), uint64(len(tried)), uint64(len(failed)), uint64(len(since))
	for _, clusters := range wentBack {
		f.Rollbacks += slices.Max(slices.Collect(maps.Values(clusters)))
	}
	var leads []float64
	for version, at := range landed {
		leads = append(leads, at.Sub(git.committed(git.brought(target, version))).Seconds())
	}
	f.LeadTimeP50, f.LeadTimeP95 = quantile(leads, 0.5), quantile(leads, 0.95)
	f.TimeToRestore = quantile(restored, 0.5)
	if f.Commits > 0 {
		rate := float64(f.FailedCommits) / float64(f.Commits)
		f.ChangeFailureRate = &rate
	}
	return f
}

// quantile interpolates between the two nearest; nil of nothing.
func quantile(all []float64, q float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, cmp.Compare[float64])
	at := q * float64(len(all)-1)
	low := int(at)
	high := min(low+1, len(all)-1)
	v := all[low] + (all[high]-all[low])*(at-float64(low))
	return &v
}
