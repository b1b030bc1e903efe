package record

import (
	"cmp"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// Landing is what is known about a question: who reads the endpoint, and what
// stands in the way on their clusters.
type Landing struct {
	// Subscribers have their Reporter set, as far as Clusters goes, and their
	// Destination not.
	Subscribers []compliance.Subscriber
	// Clusters are the reporting ones by name: only Name, UnlistedKinds and
	// Blocked are set.
	Clusters map[string]*compliance.Cluster
}

// Subscription is one reconciler as a reader of one folder of an endpoint's
// repository and ref.
type Subscription struct {
	Cluster, Destination string
	Ref                  schema.ObjectRef
	Path                 string
	Owner                schema.ObjectRef
	Status               schema.Status
	Reason               string
	// Message is empty for a success.
	Message, SourceError string
	// Applied and Attempted are commits, "" when not known; Revision is the text
	// of either, for display.
	Applied, Attempted, Revision string
	// AgingSince is zero where nothing ages.
	AgingSince time.Time
	Runs       []compliance.Run
}

// SubscriptionOf returns what an upsert of a cluster makes of the nth of its
// endpoints.
func SubscriptionOf(cluster string, u *fold.Upsert, nth int) *Subscription {
	r, source := u.Reconciler, u.Index[nth]
	s := &Subscription{
		Cluster: cluster, Destination: r.Destination(cluster), Ref: r.Ref(), Path: u.Entry.Endpoints[nth].Value().Path, Owner: u.Entry.Owner,
		Status: r.Status, Reason: r.Reason, Message: u.GateMessage(), SourceError: r.SourceError,
		Applied: r.AppliedCommit(source), Attempted: r.AttemptedCommit(source), Revision: r.Revision(source),
		AgingSince: u.Entry.Latch.AgesSince(), Runs: u.Entry.Latch.RunsAt(nth),
	}
	return s
}

// MayCount says whether the subscription can matter to a question about the
// path at the commit: it reads the path, or may be a child that is not simply
// compliant.
func (s *Subscription) MayCount(path, commit string) bool {
	return schema.PathWithin(path, s.Path) ||
		!s.Owner.IsZero() && (s.Status != schema.StatusSuccess || s.Applied != commit)
}

// Trouble is what keeps a cluster's reconcilers from being compliant beside
// what they say themselves.
type Trouble struct {
	UnlistedKinds []string
	Blocked       []compliance.Blocked
}

// IsZero reports whether nothing is in the way.
func (t Trouble) IsZero() bool { return len(t.UnlistedKinds) == 0 && len(t.Blocked) == 0 }

// NewLanding gathers the subscriptions to one repository and ref that may count
// for the path. Several folders of one reconciler are sources of one
// subscriber; which are asked for is decided by the path.
func NewLanding(path string, found []*Subscription) Landing {
	l := Landing{Clusters: map[string]*compliance.Cluster{}, Subscribers: make([]compliance.Subscriber, 0, len(found))}
	// By path, so that the same rows always make the same subscribers.
	several := slices.ContainsFunc(found, func(s *Subscription) bool { return s.Path != found[0].Path })
	if several {
		slices.SortStableFunc(found, func(a, b *Subscription) int { return cmp.Compare(a.Path, b.Path) })
	}
	sources := make([]compliance.Source, len(found)) // one allocation; each subscriber has its own place in it
	known := map[reader]int{}
	for i, s := range found {
		asked := schema.PathWithin(path, s.Path)
		src := compliance.Source{Path: s.Path, Applied: s.Applied, Attempted: s.Attempted, Runs: s.Runs}
		if several {
			at := reader{s.Cluster, s.Ref}
			if n, ok := known[at]; ok {
				merge(&l.Subscribers[n], src, asked, s.Revision)
				continue
			}
			known[at] = len(l.Subscribers)
		}
		sources[i] = src
		sub := compliance.Subscriber{
			Ref: s.Ref, Reporter: l.Cluster(s.Cluster), DestinationName: s.Destination, Asked: asked, Sources: sources[i : i+1 : i+1],
			Status: s.Status, Reason: s.Reason, Message: s.Message, SourceError: s.SourceError, AgingSince: s.AgingSince, Revision: s.Revision,
		}
		if !s.Owner.IsZero() {
			sub.Owner = &s.Owner
		}
		l.Subscribers = append(l.Subscribers, sub)
	}
	return l
}

// reader names a reconciler across clusters.
type reader struct {
	cluster string
	ref     schema.ObjectRef
}

// merge adds another path of a reconciler that is known. A path that is not
// asked for does not count beside one that is.
func merge(sub *compliance.Subscriber, src compliance.Source, asked bool, revision string) {
	switch {
	case asked == sub.Asked:
		sub.Sources = append(sub.Sources, src)
	case asked:
		sub.Asked, sub.Sources, sub.Revision = true, []compliance.Source{src}, revision
	}
}

// Cluster returns the reporting cluster of a name, which is added when it is
// not there.
func (l *Landing) Cluster(name string) *compliance.Cluster {
	c, ok := l.Clusters[name]
	if !ok {
		c = &compliance.Cluster{Name: name}
		l.Clusters[name] = c
	}
	return c
}

// SetTroubles fills in what is in the way on the reporting clusters, by name.
func (l *Landing) SetTroubles(troubles map[string]Trouble) {
	for name, t := range troubles {
		if c, ok := l.Clusters[name]; ok {
			c.UnlistedKinds, c.Blocked = t.UnlistedKinds, t.Blocked
		}
	}
}
