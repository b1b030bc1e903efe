package gate

import (
	"testing"
	"time"
	"unique"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/schema"
)

func TestNearMissesAreKeptUntilTheirRepositoryIsTouched(t *testing.T) {
	touching := func(repo string) []fold.Changes {
		h := []unique.Handle[schema.Endpoint]{unique.Make(schema.Endpoint{Repo: repo, Ref: "prod"})}
		return []fold.Changes{{Upserts: []fold.Upsert{{Entry: fold.Entry{Endpoints: h}}}}}
	}
	cases := map[string]struct {
		reason string
		on     bool
		// between happens after the first look, during what happens inside it.
		between, during []fold.Changes
		looks           int
	}{
		"nothing stored":           {reason: "the answer is the same", on: true, looks: 1},
		"another repository":       {reason: "it cannot matter", on: true, between: touching("git.example/org/other"), looks: 1},
		"this repository":          {reason: "a miss may have come", on: true, between: touching(apps.Repo), looks: 2},
		"stored while looking":     {reason: "the look may have come before it", on: true, during: touching(apps.Repo), looks: 2},
		"moved away":               {reason: "a miss may be gone", on: true, between: []fold.Changes{{Upserts: []fold.Upsert{{Left: touching(apps.Repo)[0].Upserts[0].Entry.Endpoints}}}}, looks: 2},
		"removed":                  {reason: "a miss may be gone", on: true, between: []fold.Changes{{Removals: []fold.Removal{{Endpoints: touching(apps.Repo)[0].Upserts[0].Entry.Endpoints}}}}, looks: 2},
		"other hubs write as well": {reason: "nobody tells of what they store", on: false, looks: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, looks := newRecall(tc.on), 0
			ask := func(during []fold.Changes) {
				t.Helper()
				_, err := r.nearMisses(apps, func() ([]schema.NearMiss, error) {
					looks++
					r.stored(during)
					return nil, nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			ask(tc.during)
			r.stored(tc.between)
			ask(nil)
			if looks != tc.looks {
				t.Errorf("%d looks, want %d: %s", looks, tc.looks, tc.reason)
			}
		})
	}
	r := newRecall(true)
	if _, err := r.nearMisses(apps, func() ([]schema.NearMiss, error) { return nil, errDown }); err == nil {
		t.Error("the error is lost")
	}
	looked := false
	if _, err := r.nearMisses(apps, func() ([]schema.NearMiss, error) { looked = true; return nil, nil }); err != nil || !looked {
		t.Error("a failed look was kept")
	}
}

func TestProgressIsKeptAsTheStoreWould(t *testing.T) {
	r, gate := newRecall(true), gateKey{endpoint: apps, commit: "c", policy: "p"}
	looks := 0
	look := func() (compliance.Progress, error) { looks++; return compliance.Progress{}, nil }
	for range 2 {
		if _, err := r.progressOf(gate, look); err != nil {
			t.Fatal(err)
		}
	}
	if looks != 2 {
		t.Errorf("%d looks: nothing is known before something is stored", looks)
	}
	early := time.Unix(1_800_000_000, 0)
	late := early.Add(time.Second)
	r.keepProgress(gate, compliance.Progress{FirstAsked: early, Highest: 3, RoseAt: late})
	r.keepProgress(gate, compliance.Progress{FirstAsked: late, Highest: 2, RoseAt: early})
	got, err := r.progressOf(gate, look)
	if want := (compliance.Progress{FirstAsked: early, Highest: 3, RoseAt: late}); err != nil || got != want || looks != 2 {
		t.Errorf("kept %+v after %d looks, want %+v: the earliest question and the highest count", got, looks, want)
	}
}
