package system

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// What the crash tests send: each of the clusters' agents sends messages of
// facts about reconcilers that nobody reported before.
const (
	crashClusters = 10
	crashMessages = 20
	crashFacts    = 500
	allFacts      = crashClusters * crashMessages * crashFacts
	// crashPatience is for all of them on a machine that is busy with else.
	crashPatience = 3 * time.Minute
)

// crashBodies returns the compressed messages of every agent; a new hub issues
// epoch 1 first.
func crashBodies(t testing.TB) [][][]byte {
	t.Helper()
	all := make([][][]byte, crashClusters)
	for c := range all {
		for m := range crashMessages {
			r := schema.Report{Epoch: 1, Sequence: uint64(m + 1), Mode: schema.ModeDelta, ObservedAt: time.Unix(1_800_000_000, 0).UTC()}
			for f := range crashFacts {
				k := kustomization(fmt.Sprintf("app-%d", m*crashFacts+f), "https://git.example/org/crash", fmt.Sprintf("apps/%d", f%20))
				r.Reconcilers = append(r.Reconcilers, at(k, commit(f%7), schema.StatusSuccess))
			}
			plain, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
			if _, err := z.Write(plain); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			all[c] = append(all[c], b.Bytes())
		}
	}
	return all
}

func crashCluster(c int) string { return fmt.Sprintf("crash-%02d", c) }

// TestFactsSurviveCrashes kills the hub, then the engine, then both, in the middle
// of 100,000 facts that agents send at once, each sending again what was not
// acknowledged.
func TestFactsSurviveCrashes(t *testing.T) {
	t.Parallel()
	crashes := []func(*hub){
		func(h *hub) { h.kill(t); h.launch(t) },
		func(h *hub) { h.killEngine(t) },
		func(h *hub) { h.killEngine(t); h.kill(t); h.launch(t) },
	}
	h := newHub(t)
	client := h.client(t)
	for c := range crashClusters {
		epoch, err := client.Register(t.Context(), crashCluster(c), schema.Registration{Environment: "dev", Type: "drone"})
		if err != nil || epoch != 1 {
			t.Fatalf("registering: epoch %d, %v", epoch, err)
		}
	}
	bodies := crashBodies(t)
	var acknowledged, retries atomic.Int64
	stored := make(chan struct{}, crashClusters*crashMessages)
	ctx, cancel := context.WithTimeout(t.Context(), crashPatience)
	defer cancel()
	began := time.Now()
	var agents sync.WaitGroup
	for c := range crashClusters {
		agents.Go(func() {
			for _, body := range bodies[c] {
				for !sendCrash(ctx, h.url, crashCluster(c), body) {
					retries.Add(1)
					if ctx.Err() != nil {
						t.Errorf("%s gave up", crashCluster(c))
						return
					}
				}
				acknowledged.Add(crashFacts)
				stored <- struct{}{}
			}
		})
	}
	const messages = crashClusters * crashMessages
	for n := range messages {
		select {
		case <-stored:
		case <-ctx.Done():
			t.Fatalf("%d facts were acknowledged within %s", acknowledged.Load(), crashPatience)
		}
		// The crashes come after a quarter, a half and three quarters.
		if n%(messages/4) != messages/4-1 || n == messages-1 {
			continue
		}
		before := acknowledged.Load()
		if before >= allFacts {
			t.Fatalf("all %d facts were acknowledged before the crash", before)
		}
		if h.readiness() != http.StatusOK { // after the crash before
			h.awaitReady(t)
		}
		crashes[n/(messages/4)](h)
		t.Logf("a crash after %d facts", before)
	}
	agents.Wait()
	took := time.Since(began)
	t.Logf("%d facts acknowledged in %s, %d messages sent again", acknowledged.Load(), took, retries.Load())
	// What the last acknowledgement promised is there after one more crash.
	crashes[len(crashes)-1](h)
	h.awaitReady(t)
	checkCrashState(t, h)
	if err := h.stop(t); err != nil {
		t.Errorf("stopping the hub: %v", err)
	}
	h.awaitEngineGone(t)
	checkCrashHistory(t, h.folder)
}

// sendCrash sends one message; false where it is to be sent again.
func sendCrash(ctx context.Context, url, cluster string, body []byte) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/clusters/"+cluster+"/reports", bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	response, err := http.DefaultClient.Do(r)
	if err == nil {
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		if response.StatusCode == http.StatusAccepted {
			return true
		}
	}
	select { // the hub is away: a breath before the next try
	case <-ctx.Done():
	case <-time.After(every):
	}
	return false
}

// checkCrashState counts what the API shows: every cluster's counts, and the rows
// of one of them, page by page.
func checkCrashState(t *testing.T, h *hub) {
	t.Helper()
	client := h.client(t)
	counted := 0
	for c := range crashClusters {
		n := total(t, client, crashCluster(c))
		if n != crashMessages*crashFacts {
			t.Errorf("%s has %d reconcilers, want %d", crashCluster(c), n, crashMessages*crashFacts)
		}
		counted += n
	}
	if counted != allFacts {
		t.Errorf("%d facts are counted, %d were acknowledged", counted, allFacts)
	}
	seen := make(map[string]bool, crashMessages*crashFacts)
	for row, err := range client.ClusterStates(t.Context(), schema.StateFilter{Cluster: crashCluster(3)}, schema.MaxPage) {
		if err != nil {
			t.Fatalf("listing the state: %v", err)
		}
		if seen[row.Reconciler] {
			t.Errorf("%s is listed twice", row.Reconciler)
		}
		seen[row.Reconciler] = true
	}
	if len(seen) != crashMessages*crashFacts {
		t.Errorf("%d reconcilers are listed, want %d", len(seen), crashMessages*crashFacts)
	}
}

// checkCrashHistory counts the history in the folder that the hub has left.
func checkCrashHistory(t *testing.T, folder string) {
	t.Helper()
	store := openFolder(t, folder)
	got := [...]int{
		count(t, store, "SELECT count() FROM landfall.history FINAL"),
		count(t, store, "SELECT uniqExact(cluster, name, epoch, sequence) FROM landfall.history"),
		count(t, store, "SELECT count() FROM landfall.reports FINAL"),
	}
	if want := [...]int{allFacts, allFacts, crashClusters * crashMessages}; got != want {
		t.Errorf("history has %v facts, different ones, reports; want %v", got, want)
	}
	t.Logf("history without FINAL has %d rows, reports %d",
		count(t, store, "SELECT count() FROM landfall.history"), count(t, store, "SELECT count() FROM landfall.reports"))
}

// openFolder starts an engine on the data folder of a hub that has ended, and
// returns its URL.
func openFolder(t *testing.T, folder string) string {
	t.Helper()
	return startEngine(t, filepath.Join(folder, "clickhouse"))
}

// startEngine starts an engine of the test's own.
func startEngine(t *testing.T, path string) string {
	t.Helper()
	needPrograms(t)
	const password = "secret"
	process, err := engine.StartProcess(t.Context(), engine.ProcessOptions{
		Binary: programs.engine, Library: programs.library, Path: path, Listen: "127.0.0.1:0", Password: password,
		LockWait: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("starting an engine on %s: %v", path, err)
	}
	t.Cleanup(func() { process.Stop(patience) })
	u := url.URL{Scheme: "http", User: url.UserPassword(engine.User, password), Host: process.Address(), Path: "/default"}
	return u.String()
}

// TestARepeatedMessageIsStoredOnce sends messages again, at once and after a
// restart, and counts the history.
func TestARepeatedMessageIsStoredOnce(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	app, other := kustomization("app", repo, "app"), kustomization("other", repo, "other")
	messages := []schema.Report{
		{Sequence: 1, Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, Reconcilers: []schema.Reconciler{at(app, commit(1), schema.StatusSuccess), other}},
		{Sequence: 2, Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{at(app, commit(2), schema.StatusFailure)}},
		{Sequence: 3, Mode: schema.ModeDelta, Removed: []schema.ObjectRef{other.Ref()}},
	}
	var after map[string]schema.ClusterState
	check := func(when string) {
		t.Helper()
		rows := stateRows(t, a.client, a.cluster)
		for name, row := range rows {
			row.LastSeen = time.Time{}
			rows[name] = row
		}
		if after == nil {
			after = rows
		}
		if len(rows) != 1 || rows["Kustomization/flux-system/app"] != after["Kustomization/flux-system/app"] {
			t.Errorf("%s: the state is %v, want %v", when, rows, after)
		}
	}
	for _, m := range messages {
		a.send(t, m)
	}
	check("each once")
	for _, m := range messages {
		for range 3 {
			if answer := a.send(t, m); answer.CurrentEpoch != a.epoch {
				t.Errorf("a repeated message hears of epoch %d", answer.CurrentEpoch)
			}
		}
	}
	check("each four times")
	var all sync.WaitGroup
	for _, m := range messages { // at the same time
		for range 3 {
			all.Go(func() {
				if _, err := a.try(t.Context(), m); err != nil {
					t.Errorf("sending again: %v", err)
				}
			})
		}
	}
	all.Wait()
	check("all at once")
	h.kill(t)
	h.start(t)
	for _, m := range messages {
		a.send(t, m)
	}
	check("after a crash")
	if err := h.stop(t); err != nil {
		t.Errorf("stopping the hub: %v", err)
	}
	h.awaitEngineGone(t)
	store := openFolder(t, h.folder)
	for what, want := range map[string]int{"history": 4, "reports": 3} {
		for _, final := range []string{"", " FINAL"} {
			if n := count(t, store, "SELECT count() FROM landfall."+what+final); n != want {
				t.Errorf("%s%s has %d rows, want %d", what, final, n, want)
			}
		}
	}
}

func TestTheHubHealsWhenItsEngineIsKilled(t *testing.T) {
	t.Parallel()
	h, repo := newHub(t), newRepo()
	a := newAgent(t, h)
	app := kustomization("app", repo, "app")
	a.lists(t, at(app, commit(1), schema.StatusSuccess))
	hubProcess, began := h.cmd.Process.Pid, time.Now()
	h.killEngine(t)
	polltest.Until(t, "/readyz says 503", func() bool { return h.readiness() == http.StatusServiceUnavailable })
	if status, _ := request(t, http.MethodGet, h.url+"/healthz", "", ""); status != http.StatusOK {
		t.Errorf("/healthz says %d while the engine is away", status)
	}
	polltest.Until(t, "/readyz says 200 again", func() bool { return h.readiness() == http.StatusOK })
	t.Logf("ready again %s after the kill", time.Since(began))
	h.engine = engineOf(t, hubProcess)
	expect(t, ask(t, a.client, question(repo, "app", commit(1))), schema.Passed, "")
	a.says(t, at(app, commit(2), schema.StatusSuccess))
	expect(t, ask(t, a.client, question(repo, "app", commit(2))), schema.Passed, "")
}
