package store

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// linkBytes bounds the keys of one statement, well below what ClickHouse parses.
const linkBytes = 128 << 10

// objectKey names a reconciler across clusters.
type objectKey struct {
	cluster string
	ref     schema.ObjectRef
}

func (k objectKey) size() int {
	return len(k.cluster) + len(k.ref.Kind) + len(k.ref.Namespace) + len(k.ref.Name) + 16
}

// Links adds the reconcilers that stand between a subscriber and a possible
// child of it that is not well: they read another endpoint, or are well
// themselves, and so are no rows of the look-up. They come without sources.
func (s *Store) Links(ctx context.Context, l *record.Landing) error {
	known := make(map[objectKey]bool, len(l.Subscribers))
	for i := range l.Subscribers {
		known[objectKey{l.Subscribers[i].Reporter.Name, l.Subscribers[i].Ref}] = true
	}
	for from := 0; from < len(l.Subscribers); {
		missing := missingOwners(l.Subscribers[from:], known)
		from = len(l.Subscribers)
		for len(missing) > 0 {
			n, size := 0, 0
			for n < len(missing) && size < linkBytes {
				size += missing[n].size()
				n++
			}
			if err := s.owners(ctx, missing[:n], l); err != nil {
				return err
			}
			missing = missing[n:]
		}
	}
	return nil
}

// missingOwners returns the owners of possible children that are not known, and
// makes them known.
func missingOwners(subscribers []compliance.Subscriber, known map[objectKey]bool) []objectKey {
	var missing []objectKey
	for i := range subscribers {
		sub := &subscribers[i]
		if sub.Asked || sub.Owner == nil {
			continue
		}
		key := objectKey{sub.Reporter.Name, *sub.Owner}
		if !known[key] {
			known[key] = true
			missing = append(missing, key)
		}
	}
	return missing
}

func (s *Store) owners(ctx context.Context, keys []objectKey, l *record.Landing) error {
	tuples := pick(keys, func(k *objectKey) clickhouse.GroupSet {
		return clickhouse.GroupSet{Value: []any{k.cluster, k.ref.Kind, k.ref.Namespace, k.ref.Name}}
	})
	return s.query(ctx, "links", `
		SELECT cluster, kind, namespace, name, destination, status, owner FROM {db}.current FINAL
		WHERE row = 'reconciler' AND repo = '' AND ref = '' AND path = '' AND (cluster, kind, namespace, name) IN (?)
		ORDER BY cluster, kind, namespace, name`,
		func(r driver.Rows) error {
			var sub compliance.Subscriber
			var cluster, status, owner string
			err := r.Scan(&cluster, &sub.Ref.Kind, &sub.Ref.Namespace, &sub.Ref.Name, &sub.DestinationName, &status, &owner)
			if err != nil {
				return err
			}
			sub.Reporter, sub.Status = l.Cluster(cluster), schema.Status(status)
			if at := schema.ParseObjectRef(owner); !at.IsZero() {
				sub.Owner = &at
			}
			l.Subscribers = append(l.Subscribers, sub)
			return nil
		}, tuples)
}
