// Package auth knows the bearer tokens of the hub: it makes, lists, revokes and
// recognizes them. The store keeps them; a copy in memory answers every request,
// also while the store is down. What is not known for certain stays closed.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Options are what Tokens are made of.
type Options struct {
	Store TokenStore
	// LoopbackOnly says that the hub listens on loopback addresses alone: there,
	// and only until the first token exists, no token is needed.
	LoopbackOnly bool
	// DataDir is where the first admin token is written.
	DataDir string
	// Interval is how often the copy is refreshed; 5 s by default.
	Interval   time.Duration
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Now is the clock of CreatedAt; time.Now by default.
	Now func() time.Time
}

func (o *Options) validate() error {
	if o.Store == nil || o.Logger == nil || o.Registerer == nil || o.DataDir == "" {
		return errors.New("auth: options Store, Logger, Registerer and DataDir are required")
	}
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// Tokens answers who may call.
type Tokens struct {
	store        TokenStore
	loopbackOnly bool
	dataDir      string
	interval     time.Duration
	logger       *slog.Logger
	metrics      *metrics
	now          func() time.Time

	// change makes readings of the store and changes follow one another: a
	// reading from before a change never overwrites it.
	change sync.Mutex
	known  atomic.Pointer[snapshot]
}

// snapshot is the copy in memory; it is never changed. A nil one means that the
// store has not been read yet.
type snapshot struct {
	byID map[string]record.Token
	// closed is set once a token was seen, and stays.
	closed bool
}

// New builds Tokens. They know nothing until Refresh or Run has read the store.
func New(o Options) (*Tokens, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Tokens{
		store:        o.Store,
		loopbackOnly: o.LoopbackOnly,
		dataDir:      o.DataDir,
		interval:     o.Interval,
		logger:       o.Logger,
		metrics:      newMetrics(o.Registerer),
		now:          o.Now,
	}, nil
}

// Run keeps the copy fresh until ctx ends. A store that is down is logged and
// tried again; the last copy stays in force.
func (t *Tokens) Run(ctx context.Context) error {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for {
		if err := t.Refresh(ctx); err != nil && ctx.Err() == nil {
			t.logger.Warn("tokens could not be refreshed; the last known ones stay in force", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Refresh reads the store once.
func (t *Tokens) Refresh(ctx context.Context) error {
	t.change.Lock()
	defer t.change.Unlock()
	return t.refresh(ctx)
}

func (t *Tokens) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(t.interval, time.Second))
	defer cancel()
	records, err := t.store.Tokens(ctx)
	if err != nil {
		t.metrics.failures.Inc()
		return fmt.Errorf("reading tokens: %w", err)
	}
	old := t.known.Load()
	next := &snapshot{byID: make(map[string]record.Token, len(records)), closed: len(records) > 0 || old != nil && old.closed}
	for _, r := range records {
		if old != nil && old.byID[r.ID].Revoked { // a store that lags brings no token back
			r.Revoked = true
		}
		next.byID[r.ID] = r
	}
	t.publish(next)
	return nil
}

func (t *Tokens) publish(s *snapshot) {
	t.known.Store(s)
	t.metrics.tokens.Set(float64(len(s.live())))
}

// put publishes a copy with one more or one changed record.
func (t *Tokens) put(r record.Token) {
	next := &snapshot{byID: map[string]record.Token{r.ID: r}, closed: true}
	for id, old := range t.known.Load().byID {
		if id != r.ID {
			next.byID[id] = old
		}
	}
	t.publish(next)
}

// live returns the records in force, sorted by id.
func (s *snapshot) live() []record.Token {
	out := make([]record.Token, 0, len(s.byID))
	for _, r := range s.byID {
		if !r.Revoked {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b record.Token) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (s *snapshot) admins() int {
	n := 0
	for _, r := range s.byID {
		if !r.Revoked && r.Role == schema.RoleAdmin {
			n++
		}
	}
	return n
}

// current returns the copy; an unavailable Refusal as long as there is none.
func (t *Tokens) current() (*snapshot, error) {
	if s := t.known.Load(); s != nil {
		return s, nil
	}
	return nil, &schema.Refusal{Code: schema.CodeUnavailable, Detail: "the hub has not been able to read its tokens yet; try again"}
}

// Required reports whether calls need a token: always, but on a hub that
// listens on loopback alone and has never had one.
func (t *Tokens) Required(context.Context) (bool, error) {
	s, err := t.current()
	if err != nil {
		return true, err
	}
	return s.closed || !t.loopbackOnly, nil
}

// Authenticate returns the token whose secret bearer is.
func (t *Tokens) Authenticate(_ context.Context, bearer string) (schema.Token, error) {
	s, err := t.current()
	if err != nil {
		return schema.Token{}, err
	}
	stranger := &schema.Refusal{Code: schema.CodeUnauthenticated, Detail: "nobody knows this token; it is mistyped, revoked or another hub's"}
	id, err := parseBearer(bearer)
	if err != nil {
		return schema.Token{}, stranger
	}
	hash := sha256.Sum256([]byte(bearer))
	r := s.byID[id] // its hash is all zeroes where there is none: no text's hash is
	if subtle.ConstantTimeCompare(hash[:], r.Hash[:]) != 1 || r.Revoked || !r.Role.Valid() {
		return schema.Token{}, stranger
	}
	return described(r), nil
}

// List returns the tokens in force, sorted by id.
func (t *Tokens) List(context.Context) ([]schema.Token, error) {
	s, err := t.current()
	if err != nil {
		return nil, err
	}
	live := s.live()
	out := make([]schema.Token, 0, len(live))
	for _, r := range live {
		out = append(out, described(r))
	}
	return out, nil
}

// Create makes a token, stores it and returns it with its secret. The first one
// is an admin's, or nobody could make the second.
func (t *Tokens) Create(ctx context.Context, req schema.TokenRequest) (schema.Token, error) {
	t.change.Lock()
	defer t.change.Unlock()
	if err := t.reread(ctx); err != nil {
		return schema.Token{}, err
	}
	if req.Role != schema.RoleAdmin {
		// From the first token on every call needs one: nobody is locked out.
		path, err := t.bootstrap(ctx)
		if err != nil {
			return schema.Token{}, unavailable(err)
		}
		if path != "" {
			t.logger.Info("the first token closes the hub: an admin's token was made with it", "admin_token_file", path)
		}
	}
	bearer, r := t.newRecord(req)
	if err := t.store.PutToken(ctx, r); err != nil {
		return schema.Token{}, unavailable(err)
	}
	t.put(r)
	token := described(r)
	token.Secret = bearer
	return token, nil
}

func (t *Tokens) newRecord(req schema.TokenRequest) (bearer string, r record.Token) {
	bearer, id := newBearer()
	return bearer, record.Token{
		ID:        id,
		Name:      req.Name,
		Role:      req.Role,
		Cluster:   req.Cluster,
		Hash:      sha256.Sum256([]byte(bearer)),
		CreatedAt: t.now().UTC().Truncate(time.Millisecond),
	}
}

// Revoke takes a token out of force at once. The last admin's stays.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	t.change.Lock()
	defer t.change.Unlock()
	if err := t.reread(ctx); err != nil {
		return err
	}
	s := t.known.Load()
	r, ok := s.byID[id]
	if !ok || r.Revoked {
		return &schema.Refusal{Code: schema.CodeNotFound, Detail: "there is no token with this id; GET /api/v1/tokens lists them"}
	}
	if r.Role == schema.RoleAdmin && s.admins() == 1 {
		return &schema.Refusal{Code: schema.CodeConflict, Detail: "this is the last admin's token: nobody could manage tokens without it; make another admin's token first"}
	}
	if err := t.store.RevokeToken(ctx, id); err != nil {
		return unavailable(err)
	}
	r.Revoked = true
	t.put(r)
	return nil
}

// reread reads the store before a decision that another hub's change may touch.
func (t *Tokens) reread(ctx context.Context) error {
	if err := t.refresh(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

func unavailable(err error) error {
	var refusal *schema.Refusal
	if errors.As(err, &refusal) {
		return err
	}
	return &schema.Refusal{Code: schema.CodeUnavailable, Detail: "the store of tokens does not answer; try again", Err: err}
}
