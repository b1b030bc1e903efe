package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		SELECT row, cluster, kind, namespace, name, version, status, reason, since, owner, settled, latch, digest,
		       source_type, source_url, source_ref, source_path, sources, stream
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
		row, cluster, owner, latch, digest, sources, stream string
		ref                                                 schema.ObjectRef
		version                                             uint64
		status, sourceType                                  string
		settled                                             uint8
		e                                                   fold.Entry
		main                                                schema.Source
		since                                               time.Time
	)
	err := r.Scan(&row, &cluster, &ref.Kind, &ref.Namespace, &ref.Name, &version, &status, &e.Reason, &since, &owner, &settled, &latch, &digest,
		&sourceType, &main.URL, &main.Ref, &main.Path, &sources, &stream)
	if err != nil {
		return err
	}
	state := states[cluster]
	if row == rowCluster {
		p, err := position(version, stream)
		p.Digest = state.Position.Digest // of the entries that are there
		state.Position = p
		return err
	}
	main.Type = schema.SourceType(sourceType)
	e.Version, e.Status, e.Since, e.Settled = version, schema.Status(status), restored(since), settled == 1
	e.Owner = schema.ParseObjectRef(owner)
	e.Reason = unique.Make(e.Reason).Value()
	copy(e.Digest[:], digest)
	var errLatch, errSources error
	e.Latch, errLatch = fold.ParseLatch(latch)
	e.Endpoints, errSources = endpointsOf(main, sources)
	state.Put(ref, &e)
	return errors.Join(errLatch, errSources)
}

// endpointsOf returns the endpoints of a stored reconciler: of its one source,
// or of those in JSON.
func endpointsOf(main schema.Source, sources string) ([]unique.Handle[schema.Endpoint], error) {
	var r schema.Reconciler
	if main.Type != "" {
		r.Sources = []schema.Source{main}
	}
	if sources != "" {
		var all []storedSource
		if err := json.Unmarshal([]byte(sources), &all); err != nil {
			return nil, fmt.Errorf("reading stored sources: %w", err)
		}
		r.Sources = nil
		for _, s := range all {
			if s.Type != "" {
				r.Sources = append(r.Sources, s.Source)
			}
		}
	}
	endpoints, _ := fold.Endpoints(&r)
	return slices.Clip(endpoints), nil
}

// position reads where a stream stands.
func position(version uint64, stream string) (fold.Position, error) {
	var p fold.Position
	p.Epoch, p.Sequence = schema.SplitVersion(version)
	var j streamJSON
	if err := json.Unmarshal([]byte(stream), &j); err != nil {
		return p, fmt.Errorf("reading a stored stream: %w", err)
	}
	p.Digest, _ = schema.ParseDigest(j.Digest)
	p.AgentVersion, p.UnlistedKinds = j.Agent, j.Unlisted
	if s := j.Snapshot; s != nil {
		p.Snapshot = fold.Snapshot{Start: s.Start, Part: s.Part, Parts: s.Parts, Kinds: s.Kinds}
	}
	return p, nil
}

// Positions reads where the clusters' streams stand, all of them for nil. The
// digests are those that were stored with the last message.
func (s *Store) Positions(ctx context.Context, clusters []string) (map[string]fold.Position, error) {
	if clusters != nil && len(clusters) == 0 {
		return map[string]fold.Position{}, nil
	}
	query, args := `
		SELECT cluster, version, stream FROM {db}.current FINAL
		WHERE row = 'cluster' AND repo = '' AND ref = '' AND path = ''`, []any(nil)
	if clusters != nil {
		query, args = query+" AND cluster IN (?)", []any{clusters}
	}
	positions := map[string]fold.Position{}
	err := s.query(ctx, "positions", query, func(r driver.Rows) error {
		var cluster, stream string
		var version uint64
		if err := r.Scan(&cluster, &version, &stream); err != nil {
			return err
		}
		p, err := position(version, stream)
		positions[cluster] = p
		return err
	}, args...)
	return positions, err
}
