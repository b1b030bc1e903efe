package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// Registered reads the newest registration of every cluster, or of one where
// name is not empty.
func (s *Store) Registered(ctx context.Context, name string) ([]record.Registered, error) {
	var all []record.Registered
	err := s.query(ctx, "clusters", `
		SELECT cluster, epoch, decommissioned, kind, heartbeat_ms, agent_version, registered_at, labels,
		       memberships.environment, memberships.cluster_type, reports_for
		FROM {db}.clusters WHERE {name:String} IN ('', cluster)
		ORDER BY cluster, version DESC, nonce LIMIT 1 BY cluster`,
		func(r driver.Rows) error {
			c, err := scanRegistered(r)
			all = append(all, c)
			return err
		}, named("name", name))
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
	err := r.Scan(&c.Name, &epoch, &gone, &kind, &heartbeat, &c.AgentVersion, &c.RegisteredAt, &c.Labels, &environments, &types, &c.ReportsFor)
	c.Epoch, c.Decommissioned, c.Kind = uint64(epoch), gone == 1, schema.ClusterKind(kind)
	c.HeartbeatInterval = time.Duration(heartbeat) * time.Millisecond //nolint:gosec // at most a day
	for i := range environments {
		c.Memberships = append(c.Memberships, schema.Membership{Environment: environments[i], Type: types[i]})
	}
	c.RegisteredAt = restored(c.RegisteredAt)
	return c, err
}

// Register stores a registration, or a decommission, and reports whether it
// stands alone at its epoch: another hub may have issued the same one.
func (s *Store) Register(ctx context.Context, c record.Registered, nonce uint64) (alone bool, err error) {
	version := c.Epoch << 1
	if c.Decommissioned {
		version |= 1
	}
	environments := pick(c.Memberships, func(m *schema.Membership) string { return m.Environment })
	types := pick(c.Memberships, func(m *schema.Membership) string { return m.Type })
	err = s.insert(ctx, tables.Clusters, "", 1, columnsOf{
		"cluster": []string{c.Name}, "version": []uint64{version}, "epoch": []uint32{uint32(c.Epoch)}, //nolint:gosec // at most MaxEpoch
		"decommissioned": []uint8{flag(c.Decommissioned)}, "kind": []string{string(c.Kind)}, "labels": []map[string]string{c.Labels},
		"memberships.environment": [][]string{environments}, "memberships.cluster_type": [][]string{types},
		"reports_for": [][]string{c.ReportsFor}, "heartbeat_ms": []uint64{uint64(c.HeartbeatInterval / time.Millisecond)}, //nolint:gosec // positive
		"agent_version": []string{c.AgentVersion}, "registered_at": []int64{stored(c.RegisteredAt)}, "nonce": []uint64{nonce},
	})
	if err != nil {
		return false, err
	}
	var others uint64
	err = s.query(ctx, "clusters", "SELECT uniqExact(nonce) FROM {db}.clusters WHERE cluster = {name:String} AND epoch = {epoch:UInt32} AND decommissioned = 0 AND nonce != {nonce:UInt64}",
		scanInto(&others), named("name", c.Name), named("epoch", c.Epoch), named("nonce", nonce))
	return others == 0, err
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
	return s.insert(ctx, tables.Heartbeats, "", len(beats), columnsOf{
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
