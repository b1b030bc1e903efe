package auth

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

var at = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// store is a TokenStore in memory that can be down, and can be slow to read.
type store struct {
	mu      sync.Mutex
	records []record.Token
	down    bool
	lagging []record.Token // what it answers instead, where it is not nil
}

var errDown = errors.New("dial tcp: connection refused")

func (s *store) Tokens(context.Context) ([]record.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	if s.lagging != nil {
		return slices.Clone(s.lagging), nil
	}
	return slices.Clone(s.records), nil
}

func (s *store) PutToken(_ context.Context, r record.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	s.records = append(s.records, r)
	return nil
}

func (s *store) RevokeToken(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	for i := range s.records {
		s.records[i].Revoked = s.records[i].Revoked || s.records[i].ID == id
	}
	return nil
}

func (s *store) set(f func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func newTokens(t *testing.T, s *store, loopback bool) *Tokens {
	t.Helper()
	return tokensIn(t, s, loopback, t.TempDir())
}

func tokensIn(t *testing.T, s *store, loopback bool, dir string) *Tokens {
	t.Helper()
	tokens, err := New(Options{Store: s, LoopbackOnly: loopback, DataDir: dir, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func refreshed(t *testing.T, s *store, loopback bool) *Tokens {
	t.Helper()
	tokens := newTokens(t, s, loopback)
	if err := tokens.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tokens
}

func create(t *testing.T, tokens *Tokens, role schema.Role) schema.Token {
	t.Helper()
	req := schema.TokenRequest{Name: "a " + string(role), Role: role}
	if role == schema.RoleAgent {
		req.Cluster = "drone-07"
	}
	token, err := tokens.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// code returns the code of a refusal, "" for nil.
func code(t *testing.T, err error) schema.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var refusal *schema.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("no refusal: %v", err)
	}
	return refusal.Code
}

func TestATokensLife(t *testing.T) {
	s := &store{}
	tokens := refreshed(t, s, false)
	create(t, tokens, schema.RoleAdmin)
	made := create(t, tokens, schema.RoleAgent)
	if !strings.HasPrefix(made.Secret, "lf_"+made.ID+"_") || len(made.Secret) != 3+16+1+52 {
		t.Errorf("secret %q of %q", made.Secret, made.ID)
	}
	for _, r := range s.records {
		if strings.Contains(string(r.Hash[:]), "lf_") || r.Hash == [32]byte{} {
			t.Error("the secret is stored, or nothing")
		}
	}
	want := made
	want.Secret = ""
	elsewhere := refreshed(t, s, false) // another hub
	for name, at := range map[string]*Tokens{"here": tokens, "elsewhere": elsewhere} {
		got, err := at.Authenticate(t.Context(), made.Secret)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	listed, err := tokens.List(t.Context())
	if err != nil || len(listed) != 2 || !slices.IsSortedFunc(listed, func(a, b schema.Token) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("%v %v", listed, err)
	}
	if err := tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Authenticate(t.Context(), made.Secret); code(t, err) != schema.CodeUnauthenticated {
		t.Errorf("revoked, and %v", err)
	}
	if err := tokens.Revoke(t.Context(), made.ID); code(t, err) != schema.CodeNotFound {
		t.Errorf("revoked twice: %v", err)
	}
	if err := elsewhere.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Authenticate(t.Context(), made.Secret); code(t, err) != schema.CodeUnauthenticated {
		t.Errorf("revoked elsewhere, and %v", err)
	}
}

func TestStrangers(t *testing.T) {
	s := &store{}
	tokens := refreshed(t, s, false)
	made := create(t, tokens, schema.RoleAdmin)
	other, _ := newBearer()
	cases := map[string]struct{ reason, bearer string }{
		"nothing":          {"no secret", ""},
		"unknown":          {"well formed, and nobody made it", other},
		"wrong secret":     {"a known id is no key", "lf_" + made.ID + other[strings.LastIndex(other, "_"):]},
		"upper case":       {"one secret has one form", strings.ToUpper(made.Secret)},
		"cut":              {"a part of it", made.Secret[:len(made.Secret)-1]},
		"more":             {"and something after it", made.Secret + "a"},
		"another last bit": {"base32 has unused bits at its end", made.Secret[:len(made.Secret)-1] + "b"},
		"id alone":         {"the id is public", made.ID},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := tokens.Authenticate(t.Context(), tc.bearer); code(t, err) != schema.CodeUnauthenticated || got != (schema.Token{}) {
				t.Errorf("%+v, %v, though %s", got, err, tc.reason)
			}
		})
	}
}

func TestWhenTokensAreRequired(t *testing.T) {
	cases := map[string]struct {
		reason   string
		loopback bool
		records  []record.Token
		want     bool
	}{
		"loopback, none":    {"a trial on one machine", true, nil, false},
		"loopback, one":     {"somebody cares", true, []record.Token{{ID: "a", Role: schema.RoleAdmin}}, true},
		"loopback, revoked": {"a door that was closed stays closed", true, []record.Token{{ID: "a", Role: schema.RoleAdmin, Revoked: true}}, true},
		"network, none":     {"others can reach it", false, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &store{records: tc.records}
			tokens := refreshed(t, s, tc.loopback)
			got, err := tokens.Required(t.Context())
			if err != nil || got != tc.want {
				t.Errorf("%t %v, want %t: %s", got, err, tc.want, tc.reason)
			}
			s.set(func(s *store) { s.records = nil })
			if err := tokens.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, _ := tokens.Required(t.Context()); got != tc.want {
				t.Errorf("%t after the store lost its tokens", got)
			}
		})
	}
}

func TestNothingFallsOpen(t *testing.T) {
	s := &store{down: true}
	tokens := newTokens(t, s, true)
	if err := tokens.Refresh(t.Context()); !errors.Is(err, errDown) {
		t.Fatal(err)
	}
	required, err := tokens.Required(t.Context())
	if !required || code(t, err) != schema.CodeUnavailable {
		t.Errorf("before the first reading: %t %v", required, err)
	}
	_, authErr := tokens.Authenticate(t.Context(), "lf_x_y")
	_, listErr := tokens.List(t.Context())
	_, createErr := tokens.Create(t.Context(), schema.TokenRequest{Role: schema.RoleAdmin})
	for what, err := range map[string]error{"authenticate": authErr, "list": listErr, "create": createErr, "revoke": tokens.Revoke(t.Context(), "a")} {
		refusal, _ := errors.AsType[*schema.Refusal](err)
		if code(t, err) != schema.CodeUnavailable || strings.Contains(refusal.Detail, "dial") {
			t.Errorf("%s: %v", what, err)
		}
	}

	s.set(func(s *store) { s.down = false })
	made := create(t, tokens, schema.RoleAdmin)
	s.set(func(s *store) { s.down = true })
	if err := tokens.Refresh(t.Context()); err == nil {
		t.Fatal("the store is down and nobody says so")
	}
	if _, err := tokens.Authenticate(t.Context(), made.Secret); err != nil {
		t.Errorf("the last list is lost: %v", err)
	}
	if required, err := tokens.Required(t.Context()); !required || err != nil {
		t.Errorf("%t %v", required, err)
	}
}

func TestALaggingStoreBringsNothingBack(t *testing.T) {
	s := &store{}
	tokens := refreshed(t, s, false)
	create(t, tokens, schema.RoleAdmin)
	made := create(t, tokens, schema.RoleReader)
	before := slices.Clone(s.records)
	if err := tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	s.set(func(s *store) { s.lagging = before })
	if err := tokens.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Authenticate(t.Context(), made.Secret); code(t, err) != schema.CodeUnauthenticated {
		t.Errorf("it is back: %v", err)
	}
}

func TestAdminsAreNeverLockedOut(t *testing.T) {
	s := &store{}
	dir := t.TempDir()
	tokens := tokensIn(t, s, true, dir)
	create(t, tokens, schema.RoleReader)
	first, err := tokens.Authenticate(t.Context(), read(t, filepath.Join(dir, AdminTokenFile)))
	if err != nil || first.Role != schema.RoleAdmin {
		t.Fatalf("a reader's as the first leaves no admin: %+v %v", first, err)
	}
	if required, err := tokens.Required(t.Context()); !required || err != nil {
		t.Errorf("the hub is still open: %v", err)
	}
	create(t, tokens, schema.RoleReader)
	if len(s.records) != 3 {
		t.Errorf("%d tokens, want two readers' and one admin's", len(s.records))
	}
	if err := tokens.Revoke(t.Context(), first.ID); code(t, err) != schema.CodeConflict {
		t.Errorf("the last admin's: %v", err)
	}
	create(t, tokens, schema.RoleAdmin)
	if err := tokens.Revoke(t.Context(), first.ID); err != nil {
		t.Errorf("there is another: %v", err)
	}
}

func TestTheLastAdminOfAllHubs(t *testing.T) {
	s := &store{}
	here, there := refreshed(t, s, false), refreshed(t, s, false)
	a, b := create(t, here, schema.RoleAdmin), create(t, here, schema.RoleAdmin)
	if err := here.Revoke(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if err := there.Revoke(t.Context(), b.ID); code(t, err) != schema.CodeConflict {
		t.Errorf("the other hub's revocation was not seen: %v", err)
	}
}

func TestRunFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		tokens, other := newTokens(t, s, false), refreshed(t, s, false)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- tokens.Run(ctx) }()
		synctest.Wait()
		made := create(t, other, schema.RoleAdmin)
		if _, err := tokens.Authenticate(t.Context(), made.Secret); err == nil {
			t.Error("known before it can be")
		}
		s.set(func(s *store) { s.down = true })
		time.Sleep(6 * time.Second)
		s.set(func(s *store) { s.down = false })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if _, err := tokens.Authenticate(t.Context(), made.Secret); err != nil {
			t.Errorf("not known 5 s after the store came back: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("nothing is given, and nobody minds")
	}
}
