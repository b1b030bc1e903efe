package overview

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// What follows works everything out again from the list of events, with plain
// loops and none of the code under test.

// canonical undoes aliases.
func (w *world) canonical(e schema.Endpoint) schema.Endpoint {
	for _, b := range w.branches {
		if slices.Contains(b.aliases, e.Repo) {
			e.Repo = b.repo
		}
	}
	return e
}

func (w *world) goalAt(e schema.Endpoint) *goal {
	e = w.canonical(e)
	var best *goal
	for _, g := range w.goals {
		if g.branch.repo == e.Repo && g.branch.ref == e.Ref && (e.Path+"/" == g.path+"/" || strings.HasPrefix(e.Path, g.path+"/")) &&
			(best == nil || len(g.path) > len(best.path)) {
			best = g
		}
	}
	return best
}

func (w *world) branchAt(e schema.Endpoint) *branch {
	e = w.canonical(e)
	for _, b := range w.branches {
		if b.repo == e.Repo && b.ref == e.Ref {
			return b
		}
	}
	return nil
}

// brought is the position that brought what a target has at a position.
func (g *goal) brought(at int) int {
	for ; at >= 0; at-- {
		if _, ok := g.versions[at]; ok {
			return at
		}
	}
	return -1
}

func (g *goal) version(commit string) string {
	if n := g.branch.position(commit); n >= 0 {
		if at := g.brought(n); at >= 0 {
			return g.versions[at]
		}
	}
	return commit
}

// home is where something belongs that is deployed from an endpoint to a cluster.
func (w *world) home(e schema.Endpoint, cluster string) (environment, kind string) {
	members := w.clusters[cluster].Memberships
	if g := w.goalAt(e); g != nil {
		environment = g.Environment
	} else {
		c := w.canonical(e)
		environment = w.serves[[2]string{c.Repo, c.Ref}]
	}
	if environment == "" {
		if len(members) == 1 {
			return members[0].Environment, members[0].Type
		}
		return "", ""
	}
	for _, m := range members {
		if m.Environment == environment || len(members) == 1 {
			kind = m.Type
		}
	}
	return environment, kind
}

// now replays the events.
func (w *world) current() []event {
	last := map[string]event{}
	for _, e := range w.events {
		if e.change == schema.ChangeLate {
			continue
		}
		last[e.cluster+" "+e.ref.String()] = e
	}
	var all []event
	for _, e := range last {
		if e.change != schema.ChangeRemoved {
			all = append(all, e)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[i].cluster, all[j].cluster), all[i].ref.Compare(all[j].ref)) < 0
	})
	return all
}

func (w *world) status(e event) schema.Status {
	if w.silent[e.cluster] {
		return schema.StatusUnknown
	}
	return e.status
}

// config is the tree of a target's configuration on a cluster: as it is there,
// or as it is in the newest commit.
func (w *world) config(g *goal, cluster string, current []event, newest bool) string {
	type spot struct {
		path string
		at   int
		b    *branch
	}
	var spots []spot
	for _, e := range current {
		if e.destination != cluster {
			continue
		}
		for _, s := range e.sources {
			b := w.branchAt(s.at)
			if b != nil && b.repo == "git.example/org/platform" && b.ref == g.Environment && s.applied != "" {
				at := b.position(s.applied)
				if newest {
					at = len(b.commits) - 1
				}
				spots = append(spots, spot{s.at.Path + "\x00" + s.applied, at, b})
			}
		}
	}
	sort.Slice(spots, func(i, j int) bool { return spots[i].path < spots[j].path })
	for _, s := range spots {
		path, _, _ := strings.Cut(s.path, "\x00")
		for _, folder := range []string{g.Workload + "-" + g.DeploymentTarget, g.DeploymentTarget, g.Workload} {
			if id := s.b.tree(path+"/"+folder, s.at); id != "" {
				return id
			}
		}
	}
	return ""
}

func fits(f schema.StateFilter, t schema.Target) bool {
	return (f.Environment == "" || f.Environment == t.Environment) && (f.Workspace == "" || f.Workspace == t.Workspace) && (f.Application == "" || f.Application == t.Application) &&
		(f.Workload == "" || f.Workload == t.Workload) && (f.DeploymentTarget == "" || f.DeploymentTarget == t.DeploymentTarget)
}

// environmentStates is GET /state.
func (w *world) environmentStates(f schema.StateFilter) []schema.EnvironmentState {
	current := w.current()
	type line struct {
		row     schema.EnvironmentState
		sort    string
		who     map[schema.Deployed]map[string]bool
		configs map[string]bool
	}
	lines := map[string]*line{}
	get := func(key string, row schema.EnvironmentState) *line {
		if lines[key] == nil {
			lines[key] = &line{row, key, map[schema.Deployed]map[string]bool{}, map[string]bool{}}
		}
		return lines[key]
	}
	named := func(g *goal) *line {
		row := schema.EnvironmentState{Target: g.Target, Repo: "https://" + g.branch.repo, Ref: g.branch.ref, Path: g.path}
		head := len(g.branch.commits) - 1
		row.ScheduledVersion, row.ScheduledCommit = g.version(g.branch.commits[head]), g.branch.commits[head]
		if at := g.brought(head); at >= 0 {
			row.ScheduledCommit = g.branch.commits[at]
		}
		return get(fmt.Sprint(g.Environment, "\x00", g.Workspace, "\x00", g.Application, "\x00", g.Workload, "\x00", g.DeploymentTarget, "\x00\x00\x00"), row)
	}
	for _, g := range w.goals {
		if fits(f, g.Target) {
			named(g)
		}
	}
	for _, e := range current {
		for _, s := range e.sources {
			environment, kind := w.home(s.at, e.destination)
			if f.Cluster != "" && f.Cluster != e.destination || f.ClusterType != "" && f.ClusterType != kind || f.Status != "" && f.Status != w.status(e) {
				continue
			}
			d := schema.Deployed{Version: s.applied, Commit: s.applied, Status: w.status(e)}
			var l *line
			if g := w.goalAt(s.at); g != nil {
				if !fits(f, g.Target) {
					continue
				}
				l = named(g)
				d.Version, d.ConfigVersion = g.version(s.applied), w.config(g, e.destination, current, false)
				if scheduled := w.config(g, e.destination, current, true); scheduled != "" {
					l.configs[scheduled] = true
				}
			} else {
				if !fits(f, schema.Target{Environment: environment}) {
					continue
				}
				l = get(fmt.Sprint(environment, "\x00\x00\x00\x00\x00", s.at.Repo, "\x00", s.at.Ref, "\x00", s.at.Path),
					schema.EnvironmentState{Target: schema.Target{Environment: environment}, Repo: s.at.Repo, Ref: s.at.Ref, Path: s.at.Path})
			}
			if l.who[d] == nil {
				l.who[d] = map[string]bool{}
			}
			l.who[d][e.destination] = true
		}
	}
	var keys []string
	for key := range lines {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var rows []schema.EnvironmentState
	for _, key := range keys {
		l := lines[key]
		l.row.Deployed = []schema.Deployed{}
		for d, who := range l.who {
			d.Clusters = uint64(len(who))
			l.row.Deployed = append(l.row.Deployed, d)
		}
		sort.Slice(l.row.Deployed, func(i, j int) bool {
			a, b := l.row.Deployed[i], l.row.Deployed[j]
			if a.Clusters != b.Clusters {
				return a.Clusters > b.Clusters
			}
			return fmt.Sprint(a.Version, " ", a.ConfigVersion, " ", a.Commit, " ", a.Status) < fmt.Sprint(b.Version, " ", b.ConfigVersion, " ", b.Commit, " ", b.Status)
		})
		if len(l.configs) == 1 {
			for l.row.ScheduledConfigVersion = range l.configs {
			}
		}
		if len(l.row.Deployed) > 0 || f.Cluster == "" && f.ClusterType == "" && f.Status == "" {
			rows = append(rows, l.row)
		}
	}
	return rows
}

// naming is the source that names a reconciler.
func (w *world) naming(e event) source {
	if len(e.sources) == 0 {
		return source{}
	}
	for _, s := range e.sources {
		if w.goalAt(s.at) != nil {
			return s
		}
	}
	for _, s := range e.sources {
		c := w.canonical(s.at)
		if w.serves[[2]string{c.Repo, c.Ref}] != "" {
			return s
		}
	}
	return e.sources[0]
}

// row is the part of a reconciler's row that is worked out.
func (w *world) row(e event, s source) schema.ClusterState {
	r := schema.ClusterState{Cluster: e.destination, Reconciler: e.ref.String(), Commit: s.applied, AttemptedCommit: s.attempted, Version: s.applied, Status: e.status, Drifted: e.drifted}
	r.Environment, r.ClusterType = w.home(s.at, e.destination)
	if g := w.goalAt(s.at); g != nil {
		r.Workspace, r.Application, r.Workload, r.DeploymentTarget = g.Workspace, g.Application, g.Workload, g.DeploymentTarget
		r.Version = g.version(s.applied)
	}
	return r
}

func asked(f schema.StateFilter, r schema.ClusterState) bool {
	return fits(f, schema.Target{Environment: r.Environment, Workspace: r.Workspace, Application: r.Application, Workload: r.Workload, DeploymentTarget: r.DeploymentTarget}) &&
		(f.ClusterType == "" || f.ClusterType == r.ClusterType) && (f.Cluster == "" || f.Cluster == r.Cluster) && (f.Status == "" || f.Status == r.Status)
}

// clusterStates is GET /state/clusters.
func (w *world) clusterStates(f schema.StateFilter) []schema.ClusterState {
	var rows []schema.ClusterState
	current := w.current()
	for _, e := range current {
		s := w.naming(e)
		r := w.row(e, s)
		r.Status = w.status(e)
		if g := w.goalAt(s.at); g != nil {
			r.ConfigVersion = w.config(g, e.destination, current, false)
		}
		if asked(f, r) {
			rows = append(rows, r)
		}
	}
	return rows
}

// ran are the reported successes of a reconciler on a target, or at an endpoint
// that belongs to none, in the order of its messages.
func (w *world) ran(e event) []event {
	var all []event
	g := w.goalAt(e.sources[0].at)
	for _, o := range w.events {
		if o.cluster == e.cluster && o.ref == e.ref && o.change == schema.ChangeReported && o.status == schema.StatusSuccess && o.sources[0].applied != "" &&
			(g == nil && o.sources[0].at == e.sources[0].at || g != nil && w.goalAt(o.sources[0].at) == g) {
			all = append(all, o)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[i].epoch, all[j].epoch), cmp.Compare(all[i].sequence, all[j].sequence)) < 0
	})
	return all
}

func (w *world) versionOf(e event) string {
	if g := w.goalAt(e.sources[0].at); g != nil {
		return g.version(e.sources[0].applied)
	}
	return e.sources[0].applied
}

// wentBack says that a success is one of a version that was there before, after
// another one.
func (w *world) wentBack(e event) bool {
	if e.change != schema.ChangeReported || e.status != schema.StatusSuccess || e.sources[0].applied == "" {
		return false
	}
	version, before, previous := w.versionOf(e), false, ""
	for _, o := range w.ran(e) {
		if o.epoch == e.epoch && o.sequence == e.sequence {
			break
		}
		previous = w.versionOf(o)
		before = before || previous == version
	}
	return before && previous != version
}

// history is GET /history.
func (w *world) history(f schema.HistoryFilter) []schema.HistoryEntry {
	all := slices.Clone(w.events)
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		x, y := a.sources[0].at, b.sources[0].at
		return cmp.Or(b.received.Compare(a.received), cmp.Compare(x.Repo, y.Repo), cmp.Compare(x.Ref, y.Ref), cmp.Compare(x.Path, y.Path), cmp.Compare(a.cluster, b.cluster),
			a.ref.Compare(b.ref), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.sequence, b.sequence)) < 0
	})
	var rows []schema.HistoryEntry
	for _, e := range all {
		if !f.From.IsZero() && e.received.Before(f.From) || !f.To.IsZero() && !e.received.Before(f.To) {
			continue
		}
		r := schema.HistoryEntry{ClusterState: w.row(e, e.sources[0]), Change: e.change, ObservedAt: e.observed, ReceivedAt: e.received, Rollback: w.wentBack(e)}
		stored := r.ClusterState
		if r.Status == "" {
			r.Status = schema.StatusUnknown
		}
		if asked(f.StateFilter, stored) {
			rows = append(rows, r)
		}
	}
	return rows
}

// sameTree says whether a folder is known to be the same at two commits of a
// branch.
func sameTree(b *branch, folder, x, y string) bool {
	i, j := b.position(x), b.position(y)
	return i >= 0 && j >= 0 && b.tree(folder, i) != "" && b.tree(folder, i) == b.tree(folder, j)
}

// discrepancies is GET /discrepancies.
func (w *world) discrepancies(f schema.DiscrepancyFilter) []schema.Discrepancy {
	sides := map[string]*schema.Discrepancy{}
	var keys []string
	for _, r := range w.environmentStates(f.StateFilter) {
		if r.Workload == "" {
			continue
		}
		key := fmt.Sprint(r.Workspace, "\x00", r.Application, "\x00", r.Workload, "\x00", r.DeploymentTarget)
		d := sides[key]
		if d == nil {
			d = &schema.Discrepancy{Workspace: r.Workspace, Application: r.Application, Workload: r.Workload, DeploymentTarget: r.DeploymentTarget}
			sides[key] = d
			keys = append(keys, key)
		}
		for _, o := range d.Environments { // each pair; different branches have nothing in common
			if o.ScheduledVersion != r.ScheduledVersion || o.ScheduledConfigVersion != "" && r.ScheduledConfigVersion != "" && o.ScheduledConfigVersion != r.ScheduledConfigVersion {
				d.Discrepant = true
			}
		}
		var g *goal
		for _, one := range w.goals {
			if one.Target == r.Target {
				g = one
			}
		}
		for _, is := range r.Deployed {
			if is.ConfigVersion != "" && r.ScheduledConfigVersion != "" && is.ConfigVersion != r.ScheduledConfigVersion {
				d.Discrepant = true
			}
			described := g.brought(len(g.branch.commits)-1) >= 0
			if is.Version != r.ScheduledVersion && (described || !sameTree(g.branch, g.path, is.Commit, r.ScheduledCommit)) {
				d.Discrepant = true
			}
		}
		d.Environments = append(d.Environments, schema.EnvironmentVersion{Environment: r.Environment, ScheduledVersion: r.ScheduledVersion, ScheduledCommit: r.ScheduledCommit, ScheduledConfigVersion: r.ScheduledConfigVersion, Deployed: r.Deployed})
	}
	sort.Strings(keys)
	var rows []schema.Discrepancy
	for _, key := range keys {
		if f.All || sides[key].Discrepant {
			rows = append(rows, *sides[key])
		}
	}
	return rows
}

// drift is GET /drift.
func (w *world) drift(f schema.DriftFilter) []schema.Drift {
	var rows []schema.Drift
	current := w.current()
	now := w.clock()
	for _, e := range current {
		s := w.naming(e)
		r := schema.Drift{ClusterState: w.row(e, s)}
		r.Status = w.status(e)
		g, b := w.goalAt(s.at), w.branchAt(s.at)
		if g != nil {
			r.ConfigVersion = w.config(g, e.destination, current, false)
		}
		behind := false
		var since time.Time
		if b != nil {
			head := len(b.commits) - 1
			at := b.position(s.applied)
			desired := head
			if g != nil && g.brought(head) >= 0 {
				desired = g.brought(head)
				r.DesiredVersion = g.versions[desired]
				behind = g.version(s.applied) != r.DesiredVersion && at < desired
				since = b.times[desired]
				for n := head; at >= 0 && n > at; n-- {
					if _, ok := g.versions[n]; ok {
						since = b.times[n]
					}
				}
			} else {
				r.DesiredVersion = b.commits[head]
				behind = s.applied != b.commits[head] && !sameTree(b, s.at.Path, s.applied, b.commits[head])
				since = b.times[head]
				for n := head; at >= 0 && n > at; n-- {
					if !sameTree(b, s.at.Path, b.commits[n], b.commits[n-1]) {
						since = b.times[n]
					}
				}
			}
			r.DesiredCommit = b.commits[desired]
			if behind {
				r.BehindCommits, r.BehindSeconds = -1, int64(now.Sub(since).Seconds())
				if at >= 0 {
					r.BehindCommits = int64(desired - at)
				}
			}
		}
		in := func(t time.Time) bool {
			return (f.From.IsZero() || !t.Before(f.From)) && (f.To.IsZero() || t.Before(f.To))
		}
		listed := behind && in(since) || (e.drifted || f.All && !behind) && in(w.since(e))
		if listed && asked(f.StateFilter, r.ClusterState) {
			rows = append(rows, r)
		}
	}
	return rows
}

// since is when a reconciler's status began: the first of the messages in a row
// that said it.
func (w *world) since(now event) time.Time {
	var began time.Time
	last := schema.Status("")
	for _, e := range w.events {
		if e.cluster != now.cluster || e.ref != now.ref || e.change == schema.ChangeLate {
			continue
		}
		if e.status != last {
			began = e.observed
		}
		last = e.status
	}
	return began.UTC().Truncate(time.Millisecond)
}

// dora is GET /dora.
func (w *world) dora(f schema.DORAFilter) []schema.DORA {
	var rows []schema.DORA
	goals := slices.Clone(w.goals)
	sort.Slice(goals, func(i, j int) bool { return fmt.Sprint(goals[i].Target) < fmt.Sprint(goals[j].Target) })
	days := f.To.Sub(f.From).Hours() / 24
	for _, g := range goals {
		if !fits(f.StateFilter, g.Target) {
			continue
		}
		row := schema.DORA{Target: g.Target, From: f.From, To: f.To}
		in := func(t time.Time) bool { return !t.Before(f.From) && t.Before(f.To) }
		tried, failed, landed, from := map[string]time.Time{}, map[string]bool{}, map[string]time.Time{}, map[string]string{}
		tellers := map[string][]event{}
		for _, e := range w.events {
			if w.goalAt(e.sources[0].at) != g || e.change == schema.ChangeLate || !when(e).Before(f.To) {
				continue
			}
			who := e.cluster + " " + e.ref.String()
			tellers[who] = append(tellers[who], e)
			commit := e.sources[0].applied
			if e.status == schema.StatusFailure && e.sources[0].attempted != "" {
				commit = e.sources[0].attempted
			}
			if commit == "" || e.status != schema.StatusFailure && e.status != schema.StatusSuccess {
				continue
			}
			if t, ok := tried[commit]; !ok || when(e).Before(t) {
				tried[commit] = when(e)
			}
			if e.status == schema.StatusFailure {
				failed[commit] = true
				continue
			}
			version := g.version(commit)
			if t, ok := landed[version]; !ok || when(e).Before(t) {
				landed[version], from[version] = when(e), commit
			}
		}
		for commit, t := range tried {
			if in(t) {
				row.Commits++
				if failed[commit] {
					row.FailedCommits++
				}
			}
		}
		var leads, repairs []float64
		for version, t := range landed {
			if !in(t) {
				continue
			}
			row.Deployments++
			n := g.branch.position(from[version])
			if n < 0 {
				continue
			}
			if at := g.brought(n); at >= 0 {
				n = at
			}
			leads = append(leads, max(0, t.Sub(g.branch.times[n]).Seconds()))
		}
		most := map[string]uint64{}
		for _, all := range tellers {
			sort.Slice(all, func(i, j int) bool {
				return cmp.Or(cmp.Compare(all[i].epoch, all[j].epoch), cmp.Compare(all[i].sequence, all[j].sequence)) < 0
			})
			back, seen, last := map[string]uint64{}, map[string]bool{}, ""
			var broken *event
			for i := range all {
				e := &all[i]
				switch {
				case e.change == schema.ChangeRemoved:
					broken = nil
				case e.status == schema.StatusFailure:
					if broken == nil {
						broken = e
					}
				case e.status == schema.StatusSuccess:
					if broken != nil && in(when(*e)) {
						repairs = append(repairs, max(0, when(*e).Sub(when(*broken)).Seconds()))
					}
					broken = nil
					if e.sources[0].applied == "" {
						continue
					}
					version := w.versionOf(*e)
					if version != last && seen[version] && in(when(*e)) {
						back[version]++
					}
					seen[version], last = true, version
				}
			}
			if broken != nil {
				row.Unrestored++
			}
			for version, n := range back {
				most[version] = max(most[version], n)
			}
		}
		for _, n := range most {
			row.Rollbacks += n
		}
		row.DeploymentsPerDay = float64(row.Deployments) / days
		row.LeadTimeP50, row.LeadTimeP95, row.TimeToRestore = interpolated(leads, 50), interpolated(leads, 95), interpolated(repairs, 50)
		if row.Commits > 0 {
			rate := float64(row.FailedCommits) / float64(row.Commits)
			row.ChangeFailureRate = &rate
		}
		rows = append(rows, row)
	}
	return rows
}

// when is the agent's time, but never later than the hub's.
func when(e event) time.Time {
	if e.observed.After(e.received) {
		return e.received
	}
	return e.observed
}

// interpolated is a percentile between the two nearest values.
func interpolated(values []float64, percent int) *float64 {
	if len(values) == 0 {
		return nil
	}
	sort.Float64s(values)
	steps := percent * (len(values) - 1)
	i, part := steps/100, float64(steps%100)/100
	v := values[i]
	if part > 0 {
		v += part * (values[i+1] - values[i])
	}
	return &v
}
