package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// Registered reads the newest registration of some clusters, of all for nil.
func (s *Store) Registered(ctx context.Context, names []string) ([]record.Registered, error) {
	where, args := "", []any(nil)
	if names != nil {
		where, args = "WHERE cluster IN (?)", []any{names}
	}
	var all []record.Registered
	err := s.query(ctx, "clusters", `
		SELECT cluster, epoch, decommissioned, kind, heartbeat_ms, agent_version, registered_at, labels,
		       memberships.environment, memberships.cluster_type, reports_for, nonce
		FROM {db}.clusters `+where+`
		ORDER BY cluster, version DESC, nonce LIMIT 1 BY cluster`,
		func(r driver.Rows) error {
			c, err := scanRegistered(r)
			all = append(all, c)
			return err
		}, args...)
	return all, err
}

func scanRegistered(r driver.Rows) (record.Registered, error) {
	var (
		c                   record.Registered
		epoch               uint32
		gone                uint8
		kind                string
		heartbeat           uint64
		environments, types []string
	)
	err := r.Scan(&c.Name, &epoch, &gone, &kind, &heartbeat, &c.AgentVersion, &c.RegisteredAt, &c.Labels, &environments, &types, &c.ReportsFor, &c.Nonce)
	c.Epoch, c.Decommissioned, c.Kind = uint64(epoch), gone == 1, schema.ClusterKind(kind)
	c.HeartbeatInterval = time.Duration(heartbeat) * time.Millisecond // at most a day
	for i := range environments {
		c.Memberships = append(c.Memberships, schema.Membership{Environment: environments[i], Type: types[i]})
	}
	c.RegisteredAt = restored(c.RegisteredAt)
	return c, err
}

// Register stores registrations and decommissions.
func (s *Store) Register(ctx context.Context, all []record.Registered) error {
	membership := func(part func(schema.Membership) string) func(*record.Registered) []string {
		return func(c *record.Registered) []string {
			return pick(c.Memberships, func(m *schema.Membership) string { return part(*m) })
		}
	}
	return s.insert(ctx, tables.Clusters, len(all), columnsOf{
		"cluster":                  pick(all, func(c *record.Registered) string { return c.Name }),
		"version":                  pick(all, func(c *record.Registered) uint64 { return c.Epoch<<1 | uint64(flag(c.Decommissioned)) }),
		"epoch":                    pick(all, func(c *record.Registered) uint32 { return uint32(c.Epoch) }), //nolint:gosec // at most MaxEpoch
		"decommissioned":           pick(all, func(c *record.Registered) uint8 { return flag(c.Decommissioned) }),
		"kind":                     pick(all, func(c *record.Registered) string { return string(c.Kind) }),
		"labels":                   pick(all, func(c *record.Registered) map[string]string { return c.Labels }),
		"memberships.environment":  pick(all, membership(func(m schema.Membership) string { return m.Environment })),
		"memberships.cluster_type": pick(all, membership(func(m schema.Membership) string { return m.Type })),
		"reports_for":              pick(all, func(c *record.Registered) []string { return c.ReportsFor }),
		"heartbeat_ms":             pick(all, func(c *record.Registered) uint64 { return uint64(c.HeartbeatInterval / time.Millisecond) }), //nolint:gosec // positive
		"agent_version":            pick(all, func(c *record.Registered) string { return c.AgentVersion }),
		"registered_at":            pick(all, func(c *record.Registered) int64 { return stored(c.RegisteredAt) }),
		"nonce":                    pick(all, func(c *record.Registered) uint64 { return c.Nonce }),
	})
}

// Contested returns those of the registrations whose epoch another hub has
// issued too.
func (s *Store) Contested(ctx context.Context, all []record.Registered) (names []string, err error) {
	mine := make(map[string]record.Registered, len(all))
	for _, r := range all {
		mine[r.Name] = r
	}
	err = s.query(ctx, "clusters", "SELECT cluster, epoch, nonce FROM {db}.clusters WHERE cluster IN (?) AND decommissioned = 0", func(r driver.Rows) error {
		var name string
		var epoch uint32
		var nonce uint64
		if err := r.Scan(&name, &epoch, &nonce); err != nil {
			return err
		}
		if m := mine[name]; m.Epoch == uint64(epoch) && m.Nonce != nonce {
			names = append(names, name)
		}
		return nil
	}, pick(all, func(c *record.Registered) string { return c.Name }))
	return names, err
}

// Heartbeats reads the newest heartbeat of every cluster.
func (s *Store) Heartbeats(ctx context.Context) ([]record.Heartbeat, error) {
	var all []record.Heartbeat
	err := s.query(ctx, "heartbeats", "SELECT cluster, argMax(epoch, received_at), max(received_at) FROM {db}.heartbeats GROUP BY cluster",
		func(r driver.Rows) error {
			var h record.Heartbeat
			var epoch uint32
			if err := r.Scan(&h.Cluster, &epoch, &h.ReceivedAt); err != nil {
				return err
			}
			h.Epoch = uint64(epoch)
			all = append(all, h)
			return nil
		})
	return all, err
}

// PutHeartbeats stores heartbeats.
func (s *Store) PutHeartbeats(ctx context.Context, beats []record.Heartbeat) error {
	return s.insert(ctx, tables.Heartbeats, len(beats), columnsOf{
		"cluster":     pick(beats, func(h *record.Heartbeat) string { return h.Cluster }),
		"epoch":       pick(beats, func(h *record.Heartbeat) uint32 { return uint32(h.Epoch) }), //nolint:gosec // at most MaxEpoch
		"received_at": pick(beats, func(h *record.Heartbeat) int64 { return stored(h.ReceivedAt) }),
	})
}

// Counts counts the reconcilers of clusters by status.
func (s *Store) Counts(ctx context.Context, clusters []string) (map[string]map[schema.Status]uint64, error) {
	counts := make(map[string]map[schema.Status]uint64, len(clusters))
	if len(clusters) == 0 {
		return counts, nil
	}
	err := s.query(ctx, "counts", `
		SELECT cluster, status, count() FROM {db}.current FINAL
		WHERE row = 'reconciler' AND repo = '' AND ref = '' AND path = '' AND cluster IN (?) GROUP BY cluster, status`,
		func(r driver.Rows) error {
			var cluster, status string
			var n uint64
			if err := r.Scan(&cluster, &status, &n); err != nil {
				return err
			}
			if counts[cluster] == nil {
				counts[cluster] = map[schema.Status]uint64{}
			}
			counts[cluster][schema.Status(status)] = n
			return nil
		}, clusters)
	return counts, err
}
