// Package overview answers people's questions about what runs where, what ran,
// and what should: it reads groups and rows from the store, which know commits
// only, and gives them names and versions by what hub/catalog knows of Git at
// that moment.
package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/names"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Current reads what reconcilers say now.
type Current interface {
	// Groups fails with record.ErrTooMany where there are more than were asked for.
	Groups(ctx context.Context, q record.GroupQuery) ([]record.Group, error)
	// States reads rows in the order of cluster, kind, namespace and name.
	States(ctx context.Context, q record.StateQuery) ([]record.StateRow, error)
	// Destinations reads which clusters something is deployed to from the refs of
	// the endpoints; it may name some that left.
	Destinations(ctx context.Context, refs []schema.Endpoint) ([]string, error)
}

// Past reads what reconcilers have said.
type Past interface {
	History(ctx context.Context, q record.HistoryQuery) ([]record.HistoryRow, error)
	Successes(ctx context.Context, reconcilers []record.Reconciler) (map[record.Reconciler][]record.Success, error)
	HistoryEndpoints(ctx context.Context, refs []schema.Endpoint) ([]schema.Endpoint, error)
	Delivery(ctx context.Context, q record.DeliveryQuery) (record.Delivery, error)
}

// Fleet knows the registered clusters.
type Fleet interface {
	All() []fleet.Member
}

// Names knows what commits and endpoints mean.
type Names interface {
	Index() *names.Index
}

// Links makes links to the pages of Git providers, "" where there are none.
type Links interface {
	Commit(repo, commit string) string
	Compare(repo, from, to string) string
}

// Options configure a View.
type Options struct {
	Current Current
	Past    Past
	Fleet   Fleet
	Names   Names
	Links   Links
	// Graph returns the commit graph of a canonical repository.
	Graph func(repo string) compliance.Graph
	// Now is the clock; time.Now mostly.
	Now func() time.Time
}

func (o *Options) validate() error {
	if o.Current == nil || o.Past == nil || o.Fleet == nil || o.Names == nil || o.Links == nil || o.Graph == nil || o.Now == nil {
		return errors.New("an overview needs what is current and what is past, a fleet, names, links, graphs and a clock")
	}
	return nil
}

// View answers questions, a page at a time. The errors of its methods are
// refusals and problems of package schema, or the context's.
type View struct {
	opts Options
}

// New makes a View.
func New(o Options) (*View, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &View{opts: o}, nil
}

const (
	// questionTimeout bounds how long a question may take.
	questionTimeout = 30 * time.Second
	// mostGroups bounds the groups that one answer is made of.
	mostGroups = 200_000
)

// bounded bounds the time that a question takes.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, questionTimeout)
}

// failed returns what a caller is told of an error of the store.
func failed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, record.ErrTooMany):
		return &schema.Problem{Code: schema.CodeInvalidParameter, Detail: "there is too much to look through for one answer; ask for one environment, workload, cluster type or cluster"}
	case ctx.Err() != nil:
		return fmt.Errorf("answering in time: %w", errors.Join(ctx.Err(), err))
	}
	return &schema.Refusal{Code: schema.CodeUnavailable, Detail: "ClickHouse does not answer now; try again", Err: err}
}

func badCursor() error {
	return &schema.Refusal{Code: schema.CodeInvalidCursor, Detail: "this list never gave that cursor; begin again without one"}
}

// cut returns a page of rows that are sorted by key, and the key of the last one
// where more follow.
func cut[T any](rows []T, p schema.Page, key func(*T) []string) (page []T, next []string, err error) {
	from := 0
	if len(p.After) > 0 {
		for ; from < len(rows); from++ {
			k := key(&rows[from])
			if len(k) != len(p.After) {
				return nil, nil, badCursor()
			}
			if slices.Compare(k, p.After) > 0 {
				break
			}
		}
	}
	rows = rows[from:]
	if len(rows) > p.Limit {
		rows = rows[:p.Limit]
		next = key(&rows[p.Limit-1])
	}
	return rows, next, nil
}

// sortByKey sorts rows in the order that pages have.
func sortByKey[T any](rows []T, key func(*T) []string) {
	slices.SortFunc(rows, func(a, b T) int { return slices.Compare(key(&a), key(&b)) })
}
