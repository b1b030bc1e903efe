package hub

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/hub/engine/enginetest"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/internal/polltest"
)

// TestReadersOfAHub runs a hub with a readers' address and reads every table it
// shows, and tries the one that it must not.
func TestReadersOfAHub(t *testing.T) {
	binary, library := enginetest.Files(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig()
	config.Listen, config.DataDir = "127.0.0.1:0", filepath.Join(folder, "data")
	config.ClickHouse.Listen, config.ClickHouse.ReaderPasswordFile = "127.0.0.1:0", file
	h, err := New(Options{Config: config, Version: "test", Log: slog.New(slog.DiscardHandler), EngineBinary: binary, EngineLibrary: library})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the hub ended with %v", err)
		}
	})
	waitUntilReady(t, h)

	for _, table := range store.ReaderTables() {
		if status, answer := askReader(t, h, "SELECT * FROM "+table+" FORMAT JSON"); status != http.StatusOK || !strings.Contains(answer, `"rows"`) {
			t.Errorf("%s: %d %s", table, status, answer)
		}
	}
	status, answer := askReader(t, h, "SHOW TABLES")
	if got, want := len(strings.Fields(answer)), len(store.ReaderTables()); status != http.StatusOK || got != want {
		t.Errorf("%d tables are shown, not %d: %s", got, want, answer)
	}
	for _, sql := range []string{"SELECT * FROM tokens", "SELECT * FROM landfall.schema_locks", "SELECT file('" + file + "')"} {
		if status, answer := askReader(t, h, sql); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", sql, status, answer)
		}
	}
}

func waitUntilReady(t *testing.T, h *Hub) {
	t.Helper()
	polltest.Until(t, "the hub is ready", func() bool {
		response, err := http.Get(h.URL() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode == http.StatusOK
	})
}

func askReader(t *testing.T, h *Hub, sql string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.ReaderAddress()+"/", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(engine.ReaderUser, "secret")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestReaderSettings(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*ClickHouseConfig)
		want   string
	}{
		"off":         {"the default", func(*ClickHouseConfig) {}, ""},
		"on":          {"both", func(c *ClickHouseConfig) { c.Listen, c.ReaderPasswordFile = "127.0.0.1:8123", "x" }, ""},
		"anywhere":    {"whoever writes it means it", func(c *ClickHouseConfig) { c.Listen, c.ReaderPasswordFile = "0.0.0.0:8123", "x" }, ""},
		"no password": {"never open to all", func(c *ClickHouseConfig) { c.Listen = "127.0.0.1:8123" }, "reader_password_file"},
		"no address":  {"a password for nothing", func(c *ClickHouseConfig) { c.ReaderPasswordFile = "x" }, "clickhouse.listen"},
		"no port":     {"an address has one", func(c *ClickHouseConfig) { c.Listen, c.ReaderPasswordFile = "127.0.0.1", "x" }, "host:port"},
		"a server": {"it has readers of its own", func(c *ClickHouseConfig) {
			c.URL, c.Listen, c.ReaderPasswordFile = "http://u:p@h:8123/landfall", "127.0.0.1:8123", "x"
		}, "embedded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig()
			tc.change(&config.ClickHouse)
			err := config.validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
