package gate

import (
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// expectedKind is the kind of a subscriber that never reported: nobody knows
// which reconciler it will be.
const expectedKind = "Expected"

// expect adds the clusters that should read the endpoint, by what the scheduler
// decided, and of which no reconciler does: silence is not compliance.
func (g *Gate) expect(subscribers []compliance.Subscriber, e schema.Endpoint, names []string) []compliance.Subscriber {
	if g.opts.Expectations == nil {
		return subscribers
	}
	expected := g.opts.Expectations.Expected(e, names)
	if len(expected) == 0 {
		return subscribers
	}
	wanted := make(map[schema.Membership][]record.Expected)
	for _, x := range expected {
		m := schema.Membership{Environment: x.Environment, Type: x.ClusterType}
		wanted[m] = append(wanted[m], x)
	}
	members := g.opts.Fleet.All()
	reading := readersOf(subscribers, members)
	silent := slices.Clip(subscribers)
	for i := range members {
		m := &members[i]
		if m.Decommissioned {
			continue
		}
		var c *compliance.Cluster
		for _, at := range m.Memberships {
			for _, x := range wanted[at] {
				if reading.covers(m.Name, x.Path) {
					continue
				}
				if c == nil {
					c = &compliance.Cluster{Name: m.Name, Labels: m.Labels, HeartbeatInterval: m.HeartbeatInterval, LastSeen: m.LastSeen}
				}
				silent = append(silent, compliance.Subscriber{
					Ref: schema.ObjectRef{Kind: expectedKind, Namespace: x.Environment, Name: x.Name}, Asked: true, Expected: true,
					Reporter: c, Destination: c, DestinationName: m.Name, ClusterType: x.ClusterType,
				})
			}
		}
	}
	slices.SortStableFunc(silent[len(subscribers):], func(a, b compliance.Subscriber) int {
		return strings.Compare(a.DestinationName, b.DestinationName)
	})
	return silent
}

// folders are what is read of the endpoint for each cluster.
type folders map[string][]string

// readersOf gathers what clusters read by themselves, and what is read by those
// that report for them.
func readersOf(subscribers []compliance.Subscriber, members []fleet.Member) folders {
	own, reported := folders{}, folders{}
	for i := range subscribers {
		s := &subscribers[i]
		if !s.Asked {
			continue
		}
		for _, source := range s.Sources {
			own.add(s.DestinationName, source.Path)
			reported.add(s.Reporter.Name, source.Path)
		}
	}
	for i := range members {
		for _, other := range members[i].ReportsFor {
			for _, folder := range reported[members[i].Name] {
				own.add(other, folder)
			}
		}
	}
	return own
}

func (f folders) add(cluster, folder string) {
	if !slices.Contains(f[cluster], folder) {
		f[cluster] = append(f[cluster], folder)
	}
}

// covers reports whether a folder, or one above it, is read for a cluster.
func (f folders) covers(cluster, folder string) bool {
	return slices.ContainsFunc(f[cluster], func(read string) bool { return schema.PathWithin(read, folder) })
}
