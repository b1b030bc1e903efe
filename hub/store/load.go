package store

import (
	"context"
	"slices"
	"time"
	"unique"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

// Load reads the state of clusters back. A cluster that never reported has an
// empty one.
func (s *Store) Load(ctx context.Context, clusters []string) (map[string]*fold.State, error) {
	states := make(map[string]*fold.State, len(clusters))
	for _, name := range clusters {
		states[name] = fold.NewState()
	}
	if len(clusters) == 0 {
		return states, nil
	}
	// One statement sees each report whole: the cluster's row is of the same
	// part as its reconcilers'.
	err := s.query(ctx, "load", `
		SELECT row, cluster, kind, namespace, name, version, status, reason, since,
		       owner_kind, owner_namespace, owner_name, settled, latch, digest,
		       sources.type, sources.url, sources.ref, sources.path,
		       unlisted_kinds, snapshot_start, snapshot_part, snapshot_parts, snapshot_kinds, agent_version
		FROM {db}.current FINAL
		WHERE row IN ('reconciler', 'cluster') AND repo = '' AND ref = '' AND path = '' AND cluster IN (?)`,
		func(r driver.Rows) error { return scanState(r, states) }, clusters)
	if err != nil {
		return nil, err
	}
	return states, nil
}

func scanState(r driver.Rows, states map[string]*fold.State) error {
	var (
		row, cluster, latch, digest string
		ref                         schema.ObjectRef
		version, start              uint64
		status                      string
		settled                     uint8
		types, urls, refs, paths    []string
		part, parts                 uint32
		e                           fold.Entry
		p                           fold.Position
		since                       time.Time
	)
	err := r.Scan(&row, &cluster, &ref.Kind, &ref.Namespace, &ref.Name, &version, &status, &e.Reason, &since,
		&e.Owner.Kind, &e.Owner.Namespace, &e.Owner.Name, &settled, &latch, &digest,
		&types, &urls, &refs, &paths,
		&p.UnlistedKinds, &start, &part, &parts, &p.Snapshot.Kinds, &p.AgentVersion)
	if err != nil {
		return err
	}
	state := states[cluster]
	if row == rowCluster {
		p.Epoch, p.Sequence = schema.SplitVersion(version)
		p.Digest = state.Position.Digest
		p.Snapshot.Start, p.Snapshot.Part, p.Snapshot.Parts = start, int(part), int(parts)
		state.Position = p
		return nil
	}
	e.Version, e.Status, e.Since, e.Settled = version, schema.Status(status), restored(since), settled == 1
	copy(e.Digest[:], digest)
	if e.Latch, err = fold.ParseLatch(latch); err != nil {
		return err
	}
	e.Endpoints = endpointsOf(types, urls, refs, paths)
	e.Reason = unique.Make(e.Reason).Value()
	state.Put(ref, &e)
	return nil
}

func endpointsOf(types, urls, refs, paths []string) []unique.Handle[schema.Endpoint] {
	r := schema.Reconciler{Sources: make([]schema.Source, len(types))}
	for i := range types {
		r.Sources[i] = schema.Source{Type: schema.SourceType(types[i]), URL: urls[i], Ref: refs[i], Path: paths[i]}
	}
	endpoints, _ := fold.Endpoints(&r)
	return slices.Clip(endpoints)
}

// Positions reads where the clusters' streams stand, all of them for nil. The
// digests are those that were stored with the last message.
func (s *Store) Positions(ctx context.Context, clusters []string) (map[string]fold.Position, error) {
	query, args := `
		SELECT cluster, version, state_digest, unlisted_kinds, agent_version
		FROM {db}.current FINAL
		WHERE row = 'cluster' AND repo = '' AND ref = '' AND path = ''`, []any(nil)
	if clusters != nil {
		query, args = query+" AND cluster IN (?)", []any{clusters}
	}
	positions := map[string]fold.Position{}
	err := s.query(ctx, "positions", query, func(r driver.Rows) error {
		var (
			cluster, digest string
			version         uint64
			p               fold.Position
		)
		if err := r.Scan(&cluster, &version, &digest, &p.UnlistedKinds, &p.AgentVersion); err != nil {
			return err
		}
		p.Epoch, p.Sequence = schema.SplitVersion(version)
		copy(p.Digest[:], digest)
		positions[cluster] = p
		return nil
	}, args...)
	return positions, err
}
