package store

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// Tokens reads every token, revoked ones too, by the time of their making.
func (s *Store) Tokens(ctx context.Context) ([]record.Token, error) {
	var all []record.Token
	err := s.query(ctx, "tokens", "SELECT id, name, role, cluster, hash, created_at, revoked FROM {db}.tokens FINAL ORDER BY created_at, id",
		func(r driver.Rows) error {
			var t record.Token
			var role, hash string
			var revoked uint8
			if err := r.Scan(&t.ID, &t.Name, &role, &t.Cluster, &hash, &t.CreatedAt, &revoked); err != nil {
				return err
			}
			t.Role, t.Revoked, t.CreatedAt = schema.Role(role), revoked == 1, restored(t.CreatedAt)
			copy(t.Hash[:], hash)
			all = append(all, t)
			return nil
		})
	return all, err
}

// PutToken stores a token. A revoked one stays revoked.
func (s *Store) PutToken(ctx context.Context, t record.Token) error {
	return s.insert(ctx, tables.Tokens, 1, columnsOf{
		"id": []string{t.ID}, "version": []uint64{uint64(flag(t.Revoked))}, "name": []string{t.Name}, "role": []string{string(t.Role)},
		"cluster": []string{t.Cluster}, "hash": []string{string(t.Hash[:])}, "created_at": []int64{stored(t.CreatedAt)}, "revoked": []uint8{flag(t.Revoked)},
	})
}

// RevokeToken marks a token as revoked.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	all, err := s.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.ID == id {
			t.Revoked = true
			return s.PutToken(ctx, t)
		}
	}
	return fmt.Errorf("revoking token %s: it is not there", id)
}
