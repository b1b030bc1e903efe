package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/internal/chdb"
)

func TestParseFlags(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   string
		want   config
		fails  bool
	}{
		"least":  {"defaults", "--path d", config{path: "d", listen: "127.0.0.1:0", lockWait: 30 * time.Second}, false},
		"all":    {"every flag", "--path d --listen 127.0.0.1:9 --lock-wait 1s --debug", config{path: "d", listen: "127.0.0.1:9", lockWait: time.Second, debug: true}, false},
		"memory": {"bytes", "--path d --memory 1073741824", config{path: "d", listen: "127.0.0.1:0", lockWait: 30 * time.Second, memory: 1 << 30}, false},
		"readers": {"all three", "--path d --reader-listen 127.0.0.1:0 --reader-database landfall --reader-tables a,b",
			config{path: "d", listen: "127.0.0.1:0", lockWait: 30 * time.Second, readerListen: "127.0.0.1:0", readerDatabase: "landfall", readerTables: "a,b"}, false},
		"no tables":   {"an address alone shows nothing", "--path d --reader-listen 127.0.0.1:0", config{}, true},
		"no address":  {"tables for nobody", "--path d --reader-database landfall --reader-tables a", config{}, true},
		"gigabytes":   {"4 bytes are a mistake", "--path d --memory 4", config{}, true},
		"no path":     {"a folder is never guessed", "", config{}, true},
		"argument":    {"a stray word is a mistake", "--path d more", config{}, true},
		"unknown":     {"an unknown flag is a mistake", "--path d --nope", config{}, true},
		"backwards":   {"no one waits backwards", "--path d --lock-wait -1s", config{}, true},
		"no duration": {"no one waits a potato", "--path d --lock-wait potato", config{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseFlags(strings.Fields(tc.args), io.Discard)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(config{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExitCodes fixes what hub/engine branches on.
func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		chdb.ErrNoLibrary: 3, chdb.ErrLocked: 4, errListen: 5, errReaderListen: 6, errors.New("other"): 1,
	} {
		if got := exitCode(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

func TestPasswordIsNeeded(t *testing.T) {
	for name, stdin := range map[string]string{"closed": "", "empty": "\n"} {
		t.Run(name, func(t *testing.T) {
			err := serve(t.Context(), config{path: t.TempDir(), listen: "127.0.0.1:0"}, strings.NewReader(stdin), io.Discard, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), "password") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadersPasswordIsNeeded(t *testing.T) {
	cfg := config{path: t.TempDir(), listen: "127.0.0.1:0", readerListen: "127.0.0.1:0", readerDatabase: "d", readerTables: "t"}
	for name, stdin := range map[string]string{"closed": "x\n", "empty": "x\n\n"} {
		t.Run(name, func(t *testing.T) {
			err := serve(t.Context(), cfg, strings.NewReader(stdin), io.Discard, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), "readers' password") {
				t.Errorf("got %v", err)
			}
		})
	}
}
