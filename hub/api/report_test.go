package api

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// FuzzReportBody: no body brings the API down, and what it accepts is valid,
// normalized, and reads the same again.
func FuzzReportBody(f *testing.F) {
	for _, seed := range []string{goodReport, `{}`, `null`, `[]`, ``, `{"epoch":7,"sequence":1,"mode":"snapshot","kinds":[],"observed_at":"2026-11-20T09:00:00Z"}`,
		`{"epoch":1,"sequence":1,"mode":"delta","observed_at":"2026-11-20T09:00:00Z","removed":[{"kind":"a","namespace":"b","name":"c"}]}`} {
		f.Add([]byte(seed))
	}
	fix := newFixture(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		fix.hub.report = nil
		w := serve(fix, request{method: http.MethodPost, target: reports, body: string(body), header: map[string]string{"Content-Type": "application/json"}}.build(fix))
		switch w.Code {
		case http.StatusBadRequest:
			if fix.hub.report != nil {
				t.Fatal("refused, and handed on")
			}
			if p := problem(t, w); p.Code == "" || p.Detail == "" {
				t.Fatalf("%+v", p)
			}
		case http.StatusAccepted:
			if err := fix.hub.report.Validate(); err != nil {
				t.Fatalf("accepted, and %v", err)
			}
			again, err := stdjson.Marshal(fix.hub.report)
			if err != nil {
				t.Fatal(err)
			}
			var back schema.Report
			if err := unmarshal(again, &back); err != nil {
				t.Fatalf("it does not read itself: %v\n%s", err, again)
			}
		default:
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
	})
}

// manyReconcilers is a report of n facts as an agent sends them.
func manyReconcilers(n int) schema.Report {
	r := schema.Report{Epoch: 7, Sequence: 42, Mode: schema.ModeDelta, ObservedAt: at, Agent: schema.Agent{Version: "0.1.0"}}
	for i := range n {
		rev := fmt.Sprintf("dev@sha1:%040x", i)
		r.Reconcilers = append(r.Reconcilers, schema.Reconciler{
			Kind: "Kustomization", Namespace: "flux-system", Name: fmt.Sprintf("hello-world-app-%d", i),
			Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://github.com/org/app-gitops", Ref: "dev", Path: "./functional-test"}},
			Status:  schema.StatusSuccess, Reason: "ReconciliationSucceeded", Message: "Applied revision: " + rev,
			Attempted: []string{rev}, Applied: []string{rev}, SourceRevision: rev, Since: at,
			Owner: &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "drone"},
		})
	}
	return r
}

func TestUnmarshalSaysWhatItIs(t *testing.T) {
	var v struct{ F func() }
	var invalid *schema.Invalid
	if err := unmarshal([]byte(`{"F":1}`), &v); !errors.As(err, &invalid) {
		t.Errorf("%v", err)
	}
}

// BenchmarkReport measures a report of 1,000 facts: its reading alone, the
// standard library's reading as a yardstick, and the whole way through the API.
func BenchmarkReport(b *testing.B) {
	const facts = 1000
	body, err := stdjson.Marshal(manyReconcilers(facts))
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, f func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				f(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/facts, "ns/fact")
		})
	}
	run("decode", func(b *testing.B) {
		b.Helper()
		var r schema.Report
		if err := unmarshal(body, &r); err != nil {
			b.Fatal(err)
		}
	})
	run("encoding_json", func(b *testing.B) {
		b.Helper()
		var r schema.Report
		if err := stdjson.Unmarshal(body, &r); err != nil {
			b.Fatal(err)
		}
	})
	report := manyReconcilers(facts)
	run("validate", func(b *testing.B) {
		b.Helper()
		if err := report.Validate(); err != nil {
			b.Fatal(err)
		}
		report.Normalize()
	})
	f := newFixture(b)
	for _, encoding := range []string{"", "gzip", "zstd"} {
		sent := body
		switch encoding {
		case "gzip":
			sent = gzipOf(b, bytes.NewReader(body))
		case "zstd":
			sent = zstdOf(b, bytes.NewReader(body))
		}
		q := request{method: http.MethodPost, target: reports, body: string(sent), header: map[string]string{"Content-Encoding": encoding}}
		run("request_"+encoding, func(b *testing.B) {
			b.Helper()
			if w := serve(f, q.build(f)); w.Code != http.StatusAccepted {
				b.Fatal(w.Code)
			}
			f.hub.calls = f.hub.calls[:0]
		})
	}
}
