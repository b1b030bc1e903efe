package auth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

func TestBootstrap(t *testing.T) {
	s, dir := &store{}, t.TempDir()
	path, err := tokensIn(t, s, false, dir).Bootstrap(t.Context())
	if err != nil || path != filepath.Join(dir, AdminTokenFile) {
		t.Fatal(path, err)
	}
	bearer := read(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	tokens := tokensIn(t, s, false, dir)
	again, err := tokens.Bootstrap(t.Context())
	if err != nil || again != "" || read(t, path) != bearer || len(s.records) != 1 {
		t.Errorf("a second start: %q %v, %d tokens", again, err, len(s.records))
	}
	got, err := tokens.Authenticate(t.Context(), bearer)
	if err != nil || got.Role != schema.RoleAdmin {
		t.Errorf("%+v %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestBootstrapCases(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before prepares store and folder after a first start with that bearer.
		before func(s *store, path string)
		// same says that the first start's token is in force after the second.
		same, fails bool
	}{
		"cut short before storing": {"the file was written and the hub was killed", func(s *store, _ string) { s.records = nil }, true, false},
		"file lost":                {"somebody put it away, as one should", func(_ *store, path string) { _ = os.Remove(path) }, true, false},
		"token revoked":            {"by hand, in the database: it must not come back", func(s *store, _ string) { s.records[0].Revoked = true }, false, false},
		"file of nonsense": {"not ours to overwrite", func(s *store, path string) {
			s.records = nil
			_ = os.WriteFile(path, []byte("hello"), 0o600)
		}, false, true},
		"store down": {"nobody can know", func(s *store, _ string) { s.down = true }, false, true},
		"wide mode": {"a restored backup", func(s *store, path string) {
			s.records = nil
			_ = os.Chmod(path, 0o644)
		}, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, dir := &store{}, t.TempDir()
			path, err := tokensIn(t, s, false, dir).Bootstrap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			bearer := read(t, path)
			tc.before(s, path)
			tokens := tokensIn(t, s, false, dir)
			_, err = tokens.Bootstrap(t.Context())
			if tc.fails {
				if err == nil {
					t.Errorf("no error, though %s", tc.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = tokens.Authenticate(t.Context(), bearer)
			if (err == nil) != tc.same {
				t.Errorf("the first token: %v, because %s", err, tc.reason)
			}
			if !tc.same {
				if _, err := tokens.Authenticate(t.Context(), read(t, path)); err != nil {
					t.Errorf("the new token: %v", err)
				}
			}
			if info, err := os.Stat(path); err == nil && info.Mode() != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
