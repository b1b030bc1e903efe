package hubclient

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

// TestEventReader reads streams as the HTML standard has them.
func TestEventReader(t *testing.T) {
	type ev struct{ Name, Data string }
	for name, c := range map[string]struct {
		reason, in string
		want       []ev
		retry      time.Duration
	}{
		"one":              {in: "event: verdict\ndata: {}\n\n", want: []ev{{"verdict", "{}"}}},
		"no blank":         {in: "event:verdict\ndata:{}\n\n", want: []ev{{"verdict", "{}"}}},
		"one blank only":   {in: "data:  x\n\n", want: []ev{{"", " x"}}},
		"several lines":    {in: "data: a\ndata\ndata: b\n\n", want: []ev{{"", "a\n\nb"}}},
		"CRLF":             {in: "event: v\r\ndata: a\r\n\r\ndata: b\r\n\r\n", want: []ev{{"v", "a"}, {"", "b"}}},
		"CR":               {in: "event: v\rdata: a\r\rdata: b\r\r", want: []ev{{"v", "a"}, {"", "b"}}},
		"comments":         {in: ": hello\n\n:\ndata: a\n: inside\ndata: b\n\n", want: []ev{{"", "a\nb"}}},
		"name alone":       {reason: "an event without data is none, and its name is forgotten", in: "event: v\n\ndata: a\n\n", want: []ev{{"", "a"}}},
		"byte order mark":  {in: "\ufeffdata: a\n\n", want: []ev{{"", "a"}}},
		"retry":            {in: "retry: 2500\nretry: soon\nretry: -1\n\ndata: a\n\n", want: []ev{{"", "a"}}, retry: 2500 * time.Millisecond},
		"unknown fields":   {in: "id: 7\nfoo: bar\ndata: a\n\n", want: []ev{{"", "a"}}},
		"cut":              {reason: "what the end cuts short never happened", in: "data: a\n\nevent: v\ndata: b\n", want: []ev{{"", "a"}}},
		"cut in the blank": {in: "data: b", want: nil},
		"colon in data":    {in: "data: a: b\n\n", want: []ev{{"", "a: b"}}},
		"empty data":       {in: "data\n\n", want: []ev{{"", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			for way, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "by the byte": iotest.OneByteReader(strings.NewReader(c.in))} {
				var got []ev
				e := newEventReader(r, func() {})
				for {
					x, err := e.next()
					if err != nil {
						if !errors.Is(err, io.EOF) {
							t.Errorf("%s: %v", way, err)
						}
						break
					}
					got = append(got, ev{x.name, string(x.data)})
				}
				if diff := cmp.Diff(c.want, got); diff != "" || e.retry != c.retry {
					t.Errorf("%s: retry %s (-want +got):\n%s", way, e.retry, diff)
				}
			}
		})
	}
}

// TestEventLimit caps an event that grows line by line.
func TestEventLimit(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	e := newEventReader(strings.NewReader(strings.Repeat(line, 20)), func() {})
	if _, err := e.next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// TestStream reads verdicts to the final one, and tells an early end.
func TestStream(t *testing.T) {
	const counts = `"counts":{"total":1,"compliant":1,"failed":0,"in_progress":0,"pending":0,"suspended":0,"unknown":0,"unknown_lineage":0},"unfinished":[],"evaluated_at":"2026-11-20T09:00:01Z","policy":{"max_failures":0,"min_compliant":"100%","zero_targets":"deny"}}`
	event := func(state string) string {
		return "event: verdict\ndata: {\"repo\":\"" + testRepo + "\",\"ref\":\"main\",\"path\":\"\",\ndata: \"commit\":\"" + testCommit + "\",\"state\":\"" + state + "\"," + counts + "\n\n"
	}
	q := Question{Repo: testRepo, Commit: testCommit}
	for name, c := range map[string]struct {
		body   string
		states []schema.State
		end    error
	}{
		"final":       {": hi\n\n" + event("waiting") + "event: other\ndata: x\n\n" + event("passed") + event("failed"), []schema.State{"waiting", "passed"}, io.EOF},
		"early end":   {event("waiting"), []schema.State{"waiting"}, ErrStreamEnded},
		"cut":         {event("waiting") + strings.TrimSuffix(event("passed"), "\n"), []schema.State{"waiting"}, ErrStreamEnded},
		"bad verdict": {"event: verdict\ndata: {}\n\n", nil, ErrBadAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/compliance/stream" || r.Header.Get("Accept") != eventStream {
					t.Errorf("%s %v", r.URL, r.Header)
				}
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				io.WriteString(w, "retry: 1500\n\n"+c.body)
			})
			s, err := client.ComplianceStream(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var states []schema.State
			for {
				v, err := s.Next()
				if err != nil {
					if !errors.Is(err, c.end) || !errors.Is(c.end, io.EOF) && !Temporary(err) {
						t.Errorf("ended with %v, want %v", err, c.end)
					}
					break
				}
				states = append(states, v.State)
			}
			if diff := cmp.Diff(c.states, states); diff != "" || s.Retry() != 1500*time.Millisecond {
				t.Errorf("retry %s %s", s.Retry(), diff)
			}
		})
	}
}
