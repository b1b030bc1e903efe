package overview

import (
	"cmp"
	"context"
	"slices"

	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// configurations know which commits of platform repositories are applied on
// clusters, and so which configuration each has.
type configurations struct {
	index *names.Index
	// applied are, by cluster, what its platform reconcilers run, sorted.
	applied map[string][]record.Running
}

// configurations looks what is applied on some clusters, on all for nil.
func (v *View) configurations(ctx context.Context, s *sight, clusters []string) (*configurations, error) {
	c := &configurations{index: s.index, applied: map[string][]record.Running{}}
	platforms := s.index.Platforms()
	if len(platforms) == 0 {
		return c, nil
	}
	groups, err := v.opts.Current.Groups(ctx, record.GroupQuery{Under: platforms, Destinations: clusters, Named: true, Most: mostGroups})
	if err != nil {
		return nil, err
	}
	for i := range groups {
		if groups[i].Commit == "" {
			continue
		}
		for _, name := range groups[i].Names {
			if !slices.Contains(c.applied[name], groups[i].Running) { // of another status
				c.applied[name] = append(c.applied[name], groups[i].Running)
			}
		}
	}
	for _, all := range c.applied {
		slices.SortFunc(all, compareRunning)
	}
	return c, nil
}

func compareRunning(a, b record.Running) int {
	return cmp.Or(cmp.Compare(a.Endpoint.Repo, b.Endpoint.Repo), cmp.Compare(a.Endpoint.Ref, b.Endpoint.Ref),
		cmp.Compare(a.Endpoint.Path, b.Endpoint.Path), cmp.Compare(a.Commit, b.Commit))
}

// at returns the version of a target's configuration where these are applied.
func (c *configurations) at(t schema.Target, applied []record.Running) string {
	return c.find(t, applied, func(r record.Running, folder string) string { return c.index.ConfigAt(r.Endpoint, folder, r.Commit) })
}

// scheduled is at for the newest commits of what is applied.
func (c *configurations) scheduled(t schema.Target, applied []record.Running) string {
	return c.find(t, applied, func(r record.Running, folder string) string {
		head, ok := c.index.Head(r.Endpoint.Repo, r.Endpoint.Ref)
		if !ok {
			return ""
		}
		return c.index.ConfigAt(r.Endpoint, folder, head.Commit)
	})
}

// find looks at the refs that serve the target's environment first, then at
// those of which nobody knows what they serve.
func (c *configurations) find(t schema.Target, applied []record.Running, version func(r record.Running, folder string) string) string {
	folders := names.ConfigFolders(t)
	for _, serves := range []string{t.Environment, ""} {
		for _, r := range applied {
			if c.index.Environment(r.Endpoint.Repo, r.Endpoint.Ref) != serves {
				continue
			}
			for _, folder := range folders {
				if found := version(r, folder); found != "" {
					return found
				}
			}
		}
	}
	return ""
}

// class is clusters that no row of GET /state tells apart: their memberships
// are the same, and so are the configurations of every target.
type class struct {
	memberships []schema.Membership
	applied     []record.Running
}

// classes divides the clusters that are deployed to. numbers has those that are
// not of the class others.
func (c *configurations) classes(s *sight, targets []names.Target) (all []class, numbers map[string]uint32, others uint32) {
	d := division{configurations: c, targets: targets, byKey: map[string]uint32{}, same: map[string]string{}}
	numbers = map[string]uint32{}
	others = d.class(nil, nil)
	alone := true // nobody deploys to a cluster that is not registered
	for name, m := range s.members {
		if !m.Decommissioned {
			numbers[name] = d.class(m.Memberships, c.applied[name])
		}
		alone = alone && len(m.ReportsFor) == 0
	}
	for name, applied := range c.applied {
		if _, known := numbers[name]; !known {
			numbers[name] = d.class(nil, applied)
		}
	}
	if alone {
		others = d.largest(numbers)
	}
	for name, n := range numbers {
		if n == others {
			delete(numbers, name)
		}
	}
	return d.all, numbers, others
}

// division is classes in the making.
type division struct {
	*configurations
	targets []names.Target
	all     []class
	byKey   map[string]uint32
	// same has for what is applied the configurations of all targets.
	same map[string]string
}

func (d *division) class(memberships []schema.Membership, applied []record.Running) uint32 {
	key := ""
	for _, m := range memberships {
		key += m.Environment + "\x00" + m.Type + "\x00"
	}
	key += "\x01" + d.configured(applied)
	n, ok := d.byKey[key]
	if !ok {
		n = uint32(len(d.all)) //nolint:gosec // there are fewer
		d.byKey[key] = n
		d.all = append(d.all, class{memberships, applied})
	}
	return n
}

// configured returns a text that is the same for what gives each target the
// same configuration, now and at the newest commits.
func (d *division) configured(applied []record.Running) string {
	key := ""
	for _, r := range applied {
		key += r.Endpoint.Repo + "\x00" + r.Endpoint.Ref + "\x00" + r.Endpoint.Path + "\x00" + r.Commit + "\x00"
	}
	text, ok := d.same[key]
	if ok || key == "" {
		return text
	}
	for i := range d.targets {
		text += d.at(d.targets[i].Target, applied) + "\x00" + d.scheduled(d.targets[i].Target, applied) + "\x00"
	}
	d.same[key] = text
	return text
}

func (d *division) largest(numbers map[string]uint32) uint32 {
	sizes := make([]int, len(d.all))
	for _, n := range numbers {
		sizes[n]++
	}
	best := 0
	for n, size := range sizes {
		if size > sizes[best] {
			best = n
		}
	}
	return uint32(best)
}
