package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fleet is a generated fleet: clusters with perCluster reconcilers each. One
// reconciler of every cluster reads the endpoint platform/dev/drone.
type fleet struct {
	clusters   int
	perCluster int
}

func (f fleet) size() int { return f.clusters * f.perCluster }

func clusterName(i int) string { return fmt.Sprintf("drone-%05d", i) }

const (
	commitOne = "1111111111111111111111111111111111111111"
	commitTwo = "2222222222222222222222222222222222222222"
)

// appendReconciler writes one real-sized fact as JSON.
func appendReconciler(b []byte, i int, commit string) []byte {
	repo, path := "platform-gitops", "drone"
	name := "root"
	if i > 0 {
		repo, path = fmt.Sprintf("app-%02d-gitops", i%50), fmt.Sprintf("target-%d", i/50)
		name = fmt.Sprintf("app-%02d-target-%d", i%50, i/50)
	}
	return fmt.Appendf(b, `{"kind":"Kustomization","namespace":"flux-system","name":%q,`+
		`"sources":[{"type":"git","url":"https://git.example/org/%s","ref":"dev","path":"./%s"}],`+
		`"status":"success","reason":"ReconciliationSucceeded","message":"Applied revision: dev@sha1:%s",`+
		`"attempted":["dev@sha1:%s"],"applied":["dev@sha1:%s"],"source_revision":"dev@sha1:%s","generation_observed":true,"health":"Healthy"}`,
		name, repo, path, commit, commit, commit, commit)
}

func (f fleet) snapshot() []byte {
	b := make([]byte, 0, 600*f.perCluster)
	b = append(b, `{"agent":{"version":"bench"},"epoch":1,"sequence":1,"mode":"snapshot","kinds":["Kustomization"],"observed_at":"2026-11-20T09:00:00Z","reconcilers":[`...)
	for i := range f.perCluster {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendReconciler(b, i, commitOne)
	}
	return append(b, `]}`...)
}

func rolloutDelta() []byte {
	b := []byte(`{"epoch":1,"sequence":2,"mode":"delta","observed_at":"2026-11-20T10:00:00Z","reconcilers":[`)
	return append(appendReconciler(b, 0, commitTwo), `]}`...)
}

// each runs do for 0..n-1 on so many workers and returns how long it took.
func each(b testing.TB, n, workers int, do func(i int) error) time.Duration {
	b.Helper()
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	begin := time.Now()
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || failed.Load() != nil {
					return
				}
				if err := do(i); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	return time.Since(begin)
}

func send(method, url string, body []byte, want int) error {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return nil
}

func (f fleet) register(b testing.TB, s *service) time.Duration {
	b.Helper()
	return each(b, f.clusters, 32, func(i int) error {
		return send(http.MethodPut, s.url+"/api/v1/clusters/"+clusterName(i),
			[]byte(`{"environment":"dev","type":"drone","heartbeat_interval":"24h","labels":{"region":"west"}}`), http.StatusOK)
	})
}

func (f fleet) report(b testing.TB, s *service, workers int) time.Duration {
	b.Helper()
	return each(b, f.clusters, workers, func(i int) error {
		return send(http.MethodPost, s.url+"/api/v1/clusters/"+clusterName(i)+"/reports", f.snapshot(), http.StatusAccepted)
	})
}
