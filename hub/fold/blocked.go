package fold

import (
	"cmp"
	"slices"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/schema"
)

type blockedKey struct {
	owner     schema.ObjectRef
	repo, ref string
}

// blocked gathers the unsettled reconcilers under each of their owners, at
// every depth, sorted by owner and endpoint.
func (s *State) blocked() []compliance.Blocked {
	found := map[blockedKey]*compliance.Blocked{}
	unlisted := func(ref schema.ObjectRef) bool { return slices.Contains(s.Position.UnlistedKinds, ref.Kind) }
	for ref := range s.unsettled {
		if !unlisted(ref) {
			s.block(found, ref, s.Entries[ref].Status)
		}
	}
	if len(s.Position.UnlistedKinds) > 0 {
		for ref := range s.Entries {
			if unlisted(ref) { // whatever it said last
				s.block(found, ref, schema.StatusUnknown)
			}
		}
	}
	list := make([]compliance.Blocked, 0, len(found))
	for _, b := range found {
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b compliance.Blocked) int {
		return cmp.Or(a.Owner.Compare(b.Owner), cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Ref, b.Ref))
	})
	return list
}

// block notes an unsettled reconciler with each of its owners. Chains that run
// in a circle end where they began.
func (s *State) block(found map[blockedKey]*compliance.Blocked, child schema.ObjectRef, status schema.Status) {
	e := s.Entries[child]
	var endpoints []schema.Endpoint
	for _, h := range e.Endpoints {
		endpoints = append(endpoints, schema.Endpoint{Repo: h.Value().Repo, Ref: h.Value().Ref})
	}
	slices.SortFunc(endpoints, func(a, b schema.Endpoint) int { return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Ref, b.Ref)) })
	endpoints = slices.Compact(endpoints)
	if len(endpoints) == 0 {
		endpoints = []schema.Endpoint{{}}
	}
	seen := map[schema.ObjectRef]bool{child: true}
	for owner := e.Owner; !owner.IsZero() && !seen[owner]; {
		seen[owner] = true
		for _, at := range endpoints {
			note(found, blockedKey{owner: owner, repo: at.Repo, ref: at.Ref}, child, status, e.Reason)
		}
		above, ok := s.Entries[owner]
		if !ok {
			return
		}
		owner = above.Owner
	}
}

func note(found map[blockedKey]*compliance.Blocked, at blockedKey, child schema.ObjectRef, status schema.Status, reason string) {
	b, ok := found[at]
	if !ok {
		found[at] = &compliance.Blocked{Owner: at.owner, Repo: at.repo, Ref: at.ref, Status: status, Child: child, Reason: reason, Count: 1}
		return
	}
	b.Count++
	if c := cmp.Compare(rank(status), rank(b.Status)); c < 0 || c == 0 && child.Compare(b.Child) < 0 {
		b.Status, b.Child, b.Reason = status, child, reason
	}
}

// rank orders statuses of unsettled children, the worst first.
func rank(s schema.Status) int {
	switch s {
	case schema.StatusFailure:
		return 0
	case schema.StatusUnknown:
		return 1
	case schema.StatusSuspended:
		return 2
	}
	return 3
}
