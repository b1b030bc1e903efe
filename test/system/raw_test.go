package system

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/hub/engine/enginetest"

	"github.com/landfall-hub/landfall/schema"
)

func asProblem(err error, problem **schema.Problem) bool { return errors.As(err, problem) }

// do sends a raw request.
func do(t testing.TB, r *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", r.Method, r.URL.Path, err)
	}
	return response.StatusCode, string(text)
}

// gauge reads one of the hub's own metrics.
func gauge(t testing.TB, h *hub, name string) float64 {
	t.Helper()
	_, text := request(t, http.MethodGet, h.url+"/metrics", "", "")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}

// count runs a query that gives one number.
func count(t testing.TB, url, sql string) int {
	t.Helper()
	text := strings.TrimSpace(enginetest.Exec(t, url, sql))
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s gave %q", sql, text)
	}
	return n
}
