package hub

import (
	"context"

	"github.com/landfall-hub/landfall/hub/auth"
	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/hub/store"
)

// tokenStore lets auth keep its records in the store: each has its own word
// for the same thing.
type tokenStore struct{ *store.Store }

func (s tokenStore) Tokens(ctx context.Context) ([]auth.Record, error) {
	stored, err := s.Store.Tokens(ctx)
	records := make([]auth.Record, len(stored))
	for i, t := range stored {
		records[i] = auth.Record(t)
	}
	return records, err
}

func (s tokenStore) PutToken(ctx context.Context, r auth.Record) error {
	return s.Store.PutToken(ctx, record.Token(r))
}
