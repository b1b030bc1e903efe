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
		"least":       {"defaults", "--path d", config{path: "d", listen: "127.0.0.1:0", lockWait: 30 * time.Second}, false},
		"all":         {"every flag", "--path d --listen 127.0.0.1:9 --lock-wait 1s --debug", config{path: "d", listen: "127.0.0.1:9", lockWait: time.Second, debug: true}, false},
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
		chdb.ErrNoLibrary: 3, chdb.ErrLocked: 4, errListen: 5, errors.New("other"): 1,
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
