package overview

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

const (
	// defaultDORA is how far back the figures go where nobody says.
	defaultDORA = 30 * 24 * time.Hour
	// mostMeasured bounds the targets of one page: each is worked out from all of
	// its history.
	mostMeasured = 100
)

// DORA lists the four figures of deployment targets. A page may be short.
func (v *View) DORA(ctx context.Context, f schema.DORAFilter, p schema.Page) (rows []schema.DORA, next []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s := v.look()
	span, after, err := s.span(f.Span, p.After)
	if err != nil {
		return nil, nil, err
	}
	targets := s.index.Find(f.StateFilter)
	if after != nil {
		n, found := slices.BinarySearchFunc(targets, *after, func(t names.Target, after schema.Target) int { return names.Compare(t.Target, after) })
		if found {
			n++
		}
		targets = targets[n:]
	}
	if most := min(p.Limit, mostMeasured); len(targets) > most {
		targets = targets[:most]
		next = spanCursor(targets[most-1].Target, span)
	}
	rows = make([]schema.DORA, len(targets))
	delivered, err := v.delivery(ctx, s, targets, span)
	if err != nil {
		return nil, nil, failed(ctx, err)
	}
	for i := range targets {
		rows[i] = s.measure(&targets[i], span, &delivered[i])
	}
	return rows, next, nil
}

// span returns the time that is asked about, which stays the same from page to
// page, and the target after which the page begins.
func (s *sight) span(asked schema.Span, after []string) (schema.Span, *schema.Target, error) {
	if len(after) > 0 {
		if len(after) != 7 {
			return asked, nil, badCursor()
		}
		from, err := strconv.ParseInt(after[5], 10, 64)
		to, errTo := strconv.ParseInt(after[6], 10, 64)
		if err != nil || errTo != nil || from > to {
			return asked, nil, badCursor()
		}
		t := schema.Target{Environment: after[0], Workspace: after[1], Application: after[2], Workload: after[3], DeploymentTarget: after[4]}
		return schema.Span{From: time.UnixMilli(from).UTC(), To: time.UnixMilli(to).UTC()}, &t, nil
	}
	if asked.To.IsZero() {
		asked.To = s.now
	}
	asked.To = asked.To.UTC().Truncate(time.Millisecond)
	if asked.From.IsZero() {
		asked.From = asked.To.Add(-defaultDORA)
	}
	asked.From = asked.From.UTC().Truncate(time.Millisecond)
	return asked, nil, nil
}

func spanCursor(t schema.Target, span schema.Span) []string {
	return []string{
		t.Environment, t.Workspace, t.Application, t.Workload, t.DeploymentTarget,
		strconv.FormatInt(span.From.UnixMilli(), 10), strconv.FormatInt(span.To.UnixMilli(), 10),
	}
}

// delivered is what was delivered to one target.
type delivered struct {
	commits []record.DeliveredCommit
	courses []record.Course
	repair  record.Repair
}

// delivery reads what was delivered to targets.
func (v *View) delivery(ctx context.Context, s *sight, targets []names.Target, span schema.Span) ([]delivered, error) {
	all := make([]delivered, len(targets))
	known, err := v.opts.Past.HistoryEndpoints(ctx, s.endpoints(targets))
	if err != nil {
		return nil, err
	}
	q := record.DeliveryQuery{Targets: make([][]schema.Endpoint, len(targets)), From: span.From, To: span.To}
	for _, e := range known {
		t, ok := s.index.At(e)
		if !ok {
			continue
		}
		n, found := slices.BinarySearchFunc(targets, t, func(a, b names.Target) int { return names.Compare(a.Target, b.Target) })
		if found {
			q.Targets[n] = append(q.Targets[n], e)
		}
	}
	d, err := v.opts.Past.Delivery(ctx, q)
	if err != nil {
		return nil, err
	}
	for i := range d.Commits {
		at := &all[d.Commits[i].Target]
		at.commits = append(at.commits, d.Commits[i])
	}
	for i := range d.Courses {
		at := &all[d.Courses[i].Target]
		at.courses = append(at.courses, d.Courses[i])
	}
	for i := range d.Repairs {
		all[d.Repairs[i].Target].repair = d.Repairs[i]
	}
	return all, nil
}

// measure works the figures of a target out.
func (s *sight) measure(t *names.Target, span schema.Span, d *delivered) schema.DORA {
	row := schema.DORA{Target: t.Target, From: span.From, To: span.To}
	n := named{target: *t, known: true}
	first := map[string]record.DeliveredCommit{} // by version, where it landed first
	for _, c := range d.commits {
		if span.Contains(c.Tried) {
			row.Commits++
			if !c.Failed.IsZero() {
				row.FailedCommits++
			}
		}
		if c.Landed.IsZero() {
			continue
		}
		version := s.version(&n, c.Commit)
		if before, ok := first[version]; !ok || c.Landed.Before(before.Landed) {
			first[version] = c
		}
	}
	var leads []float64
	for _, c := range first {
		if !span.Contains(c.Landed) {
			continue
		}
		row.Deployments++
		if at, ok := s.brought(t, c.Commit); ok && !at.CommittedAt.IsZero() {
			leads = append(leads, max(0, c.Landed.Sub(at.CommittedAt).Seconds()))
		}
	}
	slices.Sort(leads)
	row.LeadTimeP50, row.LeadTimeP95 = quantile(leads, 0.50), quantile(leads, 0.95)
	if days := span.To.Sub(span.From).Hours() / 24; days > 0 {
		row.DeploymentsPerDay = float64(row.Deployments) / days
	}
	if row.Commits > 0 {
		rate := float64(row.FailedCommits) / float64(row.Commits)
		row.ChangeFailureRate = &rate
	}
	row.Rollbacks = s.rollbacks(&n, d.courses)
	row.Unrestored = d.repair.Unrestored
	if d.repair.Restored > 0 {
		median := d.repair.Median.Seconds()
		row.TimeToRestore = &median
	}
	return row
}

// brought returns the commit that brought the version of a commit.
func (s *sight) brought(t *names.Target, commit string) (names.Point, bool) {
	if _, at, ok := s.index.VersionAt(*t, commit); ok {
		return at, true
	}
	return s.index.Place(t.Endpoint.Repo, t.Endpoint.Ref, commit)
}

// rollbacks counts how often a target went back to a version. What many
// reconcilers did is one: of each version, the most times that any of them went
// back to it.
func (s *sight) rollbacks(n *named, courses []record.Course) uint64 {
	most := map[string]uint64{}
	for i := range courses {
		times := map[string]uint64{}
		seen := map[string]bool{}
		last := ""
		for j, step := range courses[i].Steps {
			version := s.version(n, step.Commit)
			if j > 0 && version == last {
				continue
			}
			if step.Within && seen[version] {
				times[version]++
			}
			seen[version], last = true, version
		}
		for version, k := range times {
			most[version] = max(most[version], k)
		}
	}
	total := uint64(0)
	for _, k := range most {
		total += k
	}
	return total
}

// quantile interpolates between the two nearest of sorted values; nil of none.
func quantile(sorted []float64, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	place := q * float64(len(sorted)-1)
	low := math.Floor(place)
	value := sorted[int(low)]
	if next := int(low) + 1; next < len(sorted) {
		value += (place - low) * (sorted[next] - value)
	}
	return &value
}
