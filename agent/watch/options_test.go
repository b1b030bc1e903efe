package watch

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		edit   func(o *Options)
		want   string
	}{
		"good":       {"nothing is missing", func(*Options) {}, ""},
		"no config":  {"there is nobody to ask", func(o *Options) { o.Config = nil }, "how to reach it"},
		"timeout":    {"it would cut watches", func(o *Options) { o.Config.Timeout = time.Second }, "timeout"},
		"no kinds":   {"there is nothing to ask for", func(o *Options) { o.Kinds = nil }, "kinds to watch"},
		"half kind":  {"it cannot be asked for", func(o *Options) { o.Kinds = []Kind{{Group: "g", Kind: "K"}} }, "lacks"},
		"core group": {"it lies elsewhere", func(o *Options) { o.Kinds = []Kind{{Resource: "secrets", Kind: "Secret"}} }, "lacks"},
		"same kind":  {"keys would be the same", func(o *Options) { o.Kinds = append(o.Kinds, Kind{"g", "r", "Bucket"}) }, "two kinds"},
		"nobody":     {"who should hear of it", func(o *Options) { o.OnObject = nil }, "OnObject"},
		"no states":  {"who should hear of it", func(o *Options) { o.OnKinds = nil }, "OnKinds"},
		"negative":   {"time does not run so", func(o *Options) { o.Stale = -1 }, "negative"},
		"bad config": {"said before the first request", func(o *Options) { o.Config.Host = "://" }, "API server"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Kinds: DefaultKinds(), OnObject: func(Key) {}, OnKinds: func() {}}
			c.edit(&o)
			_, err := New(o)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that says %q: %s", err, c.want, c.reason)
			}
		})
	}
}

// What the configuration leaves open is filled in, and nothing of it changed.
func TestNewLeavesTheConfigurationAlone(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if config.UserAgent != "" || config.QPS != 0 || config.WarningHandler != nil {
		t.Errorf("it was changed: %+v", config)
	}
	if limiter := c.rest.GetRateLimiter(); limiter.QPS() != maxQPS {
		t.Errorf("%v requests a second are allowed", limiter.QPS())
	}
	config.QPS, config.Burst = 3, 5
	if c, err = newClient(config); err != nil || c.rest.GetRateLimiter().QPS() != 3 {
		t.Errorf("the rate that was asked for is not kept: %v", err)
	}
}

func TestUserAgent(t *testing.T) {
	for want, given := range map[string]string{"landfall-agent": "", "landfall-agent/v1.2.3": "landfall-agent/v1.2.3"} {
		synctest.Test(t, func(t *testing.T) {
			server := newAPIServer(t)
			server.serve(kustomization, "v1")
			var mu sync.Mutex
			got := map[string]bool{}
			server.setFault(func(_ string, _ http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				got[r.UserAgent()] = true
				return false
			})
			config := server.config()
			config.UserAgent = given
			w, err := New(Options{Config: config, Kinds: []Kind{kustomization}, OnObject: func(Key) {}, OnKinds: func() {}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { synctest.Wait(); cancel() }()
			if err := w.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]bool{want: true}, got); diff != "" {
				t.Errorf("user agents (-want +got):\n%s", diff)
			}
		})
	}
}

// What goes wrong is counted, and said once by us and nowhere else: lines of
// client-go's reflectors go to the same logger.
func TestMetricsAndLog(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.serve(gitRepository, "v1")
		server.put(gitRepository, "a", "one", "1")
		server.setFault(func(verb string, w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, kustomization.Resource) && forbid("list", "watch")(verb, w, r)
		})
		reg := prometheus.NewPedanticRegistry()
		var lines bytes.Buffer
		options := Options{
			Config: server.config(), Kinds: []Kind{kustomization, gitRepository}, OnObject: func(Key) {}, OnKinds: func() {},
			Registerer: reg, Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		w, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		server.put(gitRepository, "a", "one", "2")
		time.Sleep(5 * time.Minute)
		for range 2 { // a watch that ends in its first second says nothing: the next one is no such
			server.put(kustomization, "a", "other", "1")
			server.compact() // what was seen of GitRepositories last is forgotten
			time.Sleep(5 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}

		if n := strings.Count(lines.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings about a kind that is forbidden:\n%s", n, &lines)
		}
		for _, want := range []string{
			`msg="a kind changes its state" kind=Kustomization was=syncing state=unlisted`,
			`msg="a kind changes its state" kind=GitRepository was=syncing state=listed`,
			`msg="Caches populated" type="source.toolkit.fluxcd.io/v1 gitrepositories"`, // the reflector's own
		} {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, &lines)
			}
		}
		got := map[string]float64{}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetValue())
				}
				got[strings.TrimPrefix(f.GetName(), "landfall_watch_")+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		for _, verb := range []string{"list", "watch"} {
			refused := "errors_total Kustomization forbidden " + verb
			if got[refused] < 2 {
				t.Errorf("%v refusals to %s were counted", got[refused], verb)
			}
			delete(got, refused)
		}
		if got["errors_total GitRepository expired watch"] == 0 {
			t.Error("what was said in a stream was not counted")
		}
		delete(got, "errors_total GitRepository expired watch")
		delete(got, "errors_total GitRepository invalid watch") // it cannot stream lists
		if got["object_bytes GitRepository"] < 100 {
			t.Errorf("an object takes %v bytes", got["object_bytes GitRepository"])
		}
		delete(got, "object_bytes GitRepository")
		want := map[string]float64{
			"kind_state GitRepository absent": 0, "kind_state GitRepository listed": 1,
			"kind_state GitRepository syncing": 0, "kind_state GitRepository unlisted": 0,
			"kind_state Kustomization absent": 0, "kind_state Kustomization listed": 0,
			"kind_state Kustomization syncing": 0, "kind_state Kustomization unlisted": 1,
			"objects GitRepository": 1, "objects Kustomization": 0, "object_bytes Kustomization": 0,
			"queue_depth ": 0, "discovery_errors_total ": 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

func TestDefaultKinds(t *testing.T) {
	for _, k := range DefaultKinds() {
		if k.Resource != strings.ToLower(k.Resource) || !strings.HasPrefix(k.Resource, strings.ToLower(k.Kind[:len(k.Kind)-1])) {
			t.Errorf("%s is no resource of %s", k.Resource, k.Kind)
		}
	}
}

// A packed object weighs what a bulk of them is measured with.
func TestRealSized(t *testing.T) { realSized(t) }
