package gate

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/schema"
)

func TestAsk(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitA, schema.StatusSuccess)
		r.store.says("c2", "c2", commitB, schema.StatusInProgress)
		v := r.ask(question())
		if v.State != schema.Waiting || v.Counts.Total != 2 || v.Counts.Compliant != 1 || v.ByClusterType["type-of-c1"].Compliant != 1 || v.ByClusterType["type-of-c2"].Total != 1 {
			t.Errorf("the verdict is %+v", v)
		}
		if v.Repo != "https://git.example/org/apps" || v.Commit != commitA || v.Policy != schema.DefaultPolicy() {
			t.Errorf("the question is repeated as %+v", v)
		}
		r.store.says("c2", "c2", commitA, schema.StatusSuccess)
		if v := r.ask(question()); v.State != schema.Passed {
			t.Errorf("the verdict is %+v", v)
		}
	})
}

func TestProgressIsStoredOncePerChange(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		time.Sleep(time.Second + 123456*time.Nanosecond)
		r.store.says("c1", "c1", commitB, schema.StatusInProgress)
		first := r.ask(question())
		for range 3 {
			time.Sleep(time.Second)
			if v := r.ask(question()); !v.DeadlineAt.Equal(first.DeadlineAt) {
				t.Errorf("the deadline moved from %s to %s", first.DeadlineAt, v.DeadlineAt)
			}
		}
		r.restart()
		if v := r.ask(question()); !v.DeadlineAt.Equal(first.DeadlineAt) {
			t.Errorf("a restart moved the deadline from %s to %s", first.DeadlineAt, v.DeadlineAt)
		}
		if _, puts := r.store.count(); puts != 1 {
			t.Errorf("progress was stored %d times for one question", puts)
		}
		r.store.says("c1", "c1", commitA, schema.StatusSuccess)
		if v := r.ask(question()); !v.DeadlineAt.After(first.DeadlineAt) {
			t.Error("a rise does not move the deadline")
		}
		r.ask(question())
		if _, puts := r.store.count(); puts != 2 {
			t.Errorf("progress was stored %d times, want one more for the rise", puts)
		}
		r.ask(question(func(p *schema.Policy) { p.MaxFailures = 1 }))
		if _, puts := r.store.count(); puts != 3 {
			t.Errorf("another policy is another question: %d", puts)
		}
	})
}

func TestErrorsOfTheStore(t *testing.T) {
	for _, call := range []string{"landing", "progress", "put"} {
		inBubble(t, false, func(t *testing.T, r *rig) {
			r.store.fail(call, errDown)
			_, err := r.gate.Ask(t.Context(), question())
			refusal, ok := errors.AsType[*schema.Refusal](err)
			if !ok || refusal.Code != schema.CodeUnavailable || !errors.Is(err, errDown) {
				t.Errorf("%s: the error is %v", call, err)
			}
			if _, err := r.gate.Next(t.Context(), question(), schema.Verdict{}); err == nil {
				t.Errorf("%s: one who waits is not told", call)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(context.Canceled)
			if _, err := r.gate.Ask(ctx, question()); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: of a caller that left the error is %v", call, err)
			}
			r.store.fail(call, nil)
			if v := r.ask(question()); v.State != schema.Waiting {
				t.Errorf("%s: afterwards the verdict is %+v", call, v)
			}
		})
	}
}

// Which reconcilers count, by the clusters that report them and that they
// deploy to.
func TestClustersThatCount(t *testing.T) {
	cases := map[string]struct {
		reason                string
		reporter, destination string
		gone                  string
		total                 int
		clusterType           string
	}{
		"Own":              {"A cluster's own reconciler.", "c1", "c1", "", 1, "type-of-c1"},
		"Elsewhere":        {"One that deploys elsewhere counts there.", "c1", "c2", "", 1, "type-of-c2"},
		"NotRegistered":    {"A place that nobody registered is of no type.", "c1", "spoke", "", 1, ""},
		"ReporterGone":     {"A decommissioned reporter leaves.", "c1", "c1", "c1", 0, ""},
		"ReporterGoneElse": {"Wherever it deployed.", "c1", "c2", "c1", 0, ""},
		"DestinationGone":  {"A decommissioned destination leaves.", "c1", "c2", "c2", 0, ""},
		"ReporterUnknown":  {"Rows of a reporter that was never registered do not count.", "never", "never", "", 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, false, func(t *testing.T, r *rig) {
				r.store.says(tc.reporter, tc.destination, commitA, schema.StatusSuccess)
				if tc.gone != "" {
					if _, err := r.fleet.Decommission(t.Context(), tc.gone); err != nil {
						t.Fatal(err)
					}
				}
				v := r.ask(question())
				if v.Counts.Total != tc.total {
					t.Errorf("%s The total is %d", tc.reason, v.Counts.Total)
				}
				if _, ok := v.ByClusterType[tc.clusterType]; tc.total > 0 && !ok {
					t.Errorf("%s By type: %v", tc.reason, v.ByClusterType)
				}
			})
		})
	}
}

// Silence is the reporter's, labels are the destination's.
func TestReporterAndDestination(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.register("c1", 10*time.Second)
		r.store.says("c1", "c2", commitA, schema.StatusSuccess)
		q := question(func(p *schema.Policy) { p.Mandatory = "name=c2" })
		q.Mandatory = func(labels map[string]string) bool { return labels["name"] == "c2" }
		if v := r.ask(q); v.State != schema.Passed {
			t.Errorf("the destination's labels do not count: %+v", v)
		}
		time.Sleep(50 * time.Second)
		if v := r.ask(q); v.Counts.Unknown != 1 {
			t.Errorf("the reporter is silent: %+v", v.Counts)
		}
		r.fleet.Seen("c1", 2)
		if v := r.ask(q); v.State != schema.Passed {
			t.Errorf("the reporter is back: %+v", v)
		}
	})
}

// Another hub registered a cluster and stored its report; this one has not
// looked yet. Missing its reconciler would pass a gate that must not pass.
func TestClusterOfAnotherHub(t *testing.T) {
	inBubble(t, true, func(t *testing.T, r *rig) {
		other, err := fleet.New(fleet.Options{Store: r.registry, SilentAfter: 5, Shared: true, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Register(t.Context(), "new", schema.Registration{HeartbeatInterval: schema.Duration(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		r.store.says("c1", "c1", commitA, schema.StatusSuccess)
		r.store.says("new", "new", commitB, schema.StatusFailure)
		r.store.says("never", "never", commitA, schema.StatusSuccess)
		if v := r.ask(question()); v.Counts.Total != 2 || v.State == schema.Passed {
			t.Errorf("the verdict is %+v", v)
		}
		r.store.says("newer", "newer", commitB, schema.StatusFailure)
		r.registry.err = errDown
		if _, err := r.gate.Ask(t.Context(), question()); !errors.Is(err, errDown) {
			t.Errorf("nobody knows whether it counts, and the error is %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	f, err := fleet.New(fleet.Options{Store: &registry{}, SilentAfter: 1, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	good := Options{Landings: newBoard(), Store: newBoard(), Fleet: f, Now: time.Now, Log: log, Rules: compliance.DefaultRules(), Graph: func(string) compliance.Graph { return compliance.Equality{} }}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Options){
		"no landings": func(o *Options) { o.Landings = nil }, "no store": func(o *Options) { o.Store = nil }, "no fleet": func(o *Options) { o.Fleet = nil }, "no clock": func(o *Options) { o.Now = nil },
		"no logger": func(o *Options) { o.Log = nil }, "no graph": func(o *Options) { o.Graph = nil },
		"no silence": func(o *Options) { o.Rules.SilentAfter = 0 }, "no age": func(o *Options) { o.Rules.AgeAfter = 0 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: made a gate", name)
		}
	}
}

func TestConcerns(t *testing.T) {
	other := schema.Endpoint{Repo: apps.Repo, Ref: apps.Ref, Path: "elsewhere"}
	ref, repo := apps, apps
	ref.Ref, repo.Repo = "prod", "git.example/org/other"
	cases := map[string]struct {
		reason   string
		watched  []string
		all      bool
		cluster  string
		says     []schema.Endpoint
		concerns bool
	}{
		"Ours":          {"Anything of a cluster that counts.", []string{"c1"}, false, "c1", nil, true},
		"Others":        {"Nothing of another one's other endpoints.", []string{"c1"}, false, "c2", []schema.Endpoint{ref, repo}, false},
		"NewSubscriber": {"A new subscriber, wherever it is.", []string{"c1"}, false, "c2", []schema.Endpoint{repo, apps}, true},
		"OtherPath":     {"Another path of the repository may be a child's.", []string{"c1"}, false, "c2", []schema.Endpoint{other}, true},
		"NothingKnown":  {"Everything while a look is going on.", nil, true, "c2", nil, true},
		"NoSubscribers": {"With no subscribers only new ones.", []string{}, false, "c2", []schema.Endpoint{repo}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &watcher{endpoint: apps, names: []string{apps.Repo}}
			if !tc.all {
				clusters := map[string]*compliance.Cluster{}
				for _, name := range tc.watched {
					clusters[name] = nil
				}
				w.watch(clusters)
			}
			if got := w.concerns(&message(tc.cluster, tc.says...)[0]); got != tc.concerns {
				t.Errorf("%s Concerns is %t", tc.reason, got)
			}
		})
	}
}
