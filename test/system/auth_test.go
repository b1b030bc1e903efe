package system

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// TestTokensAreNeededFromTheFirstOneOn follows a hub on loopback from its first
// start to a restart with tokens.
func TestTokensAreNeededFromTheFirstOneOn(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	status := func(token string) int {
		t.Helper()
		code, _ := request(t, http.MethodGet, h.url+"/api/v1/clusters", token, "")
		return code
	}
	if got := status(""); got != http.StatusOK {
		t.Errorf("a fresh hub on loopback says %d without a token", got)
	}
	if _, err := os.Stat(filepath.Join(h.folder, "admin-token")); !os.IsNotExist(err) {
		t.Errorf("a hub on loopback makes no token by itself: %v", err)
	}
	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/api/v1/clusters", nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Host = "evil.example"
	if code, text := do(t, foreign); code != http.StatusForbidden {
		t.Errorf("without tokens, a name that a page of the web may have made is answered with %d %s", code, text)
	}

	admin, err := h.client(t).CreateToken(t.Context(), schema.TokenRequest{Role: schema.RoleAdmin})
	if err != nil {
		t.Fatalf("making the first token: %v", err)
	}
	reader, err := h.as(t, admin.Secret).CreateToken(t.Context(), schema.TokenRequest{Name: "dashboards", Role: schema.RoleReader})
	if err != nil {
		t.Fatalf("making a token: %v", err)
	}
	if !strings.HasPrefix(admin.Secret, "lf_"+admin.ID+"_") {
		t.Errorf("a token has the form lf_<id>_<random>, not %q", admin.Secret)
	}
	check := func(when string) {
		t.Helper()
		for token, want := range map[string]int{"": 401, "nonsense": 401, admin.Secret + "x": 401, admin.Secret: 200, reader.Secret: 200} {
			if got := status(token); got != want {
				t.Errorf("%s: the token %.12q… is answered with %d, want %d", when, token, got, want)
			}
		}
		for _, open := range []string{"/", "/healthz", "/readyz", "/metrics", "/openapi.json"} {
			if code, _ := request(t, http.MethodGet, h.url+open, "", ""); code != http.StatusOK {
				t.Errorf("%s: %s says %d without a token", when, open, code)
			}
		}
	}
	check("with tokens")
	if err := h.stop(t); err != nil {
		t.Fatal(err)
	}
	h.start(t)
	check("after a restart")

	_, listed := request(t, http.MethodGet, h.url+"/api/v1/tokens", admin.Secret, "")
	if strings.Contains(listed, admin.Secret) || strings.Contains(listed, reader.Secret) || !strings.Contains(listed, reader.ID) {
		t.Errorf("a list shows ids and no secrets: %s", listed)
	}
	if err := h.as(t, admin.Secret).RevokeToken(t.Context(), reader.ID); err != nil {
		t.Fatalf("revoking: %v", err)
	}
	if got := status(reader.Secret); got != http.StatusUnauthorized {
		t.Errorf("a revoked token is answered with %d", got)
	}
	refused(t, h.as(t, admin.Secret).RevokeToken(t.Context(), "nobody"), http.StatusNotFound, schema.CodeNotFound)
	// Without any token left the hub stays closed.
	if err := h.as(t, admin.Secret).RevokeToken(t.Context(), admin.ID); err != nil {
		t.Logf("the last admin's token cannot be revoked: %v", err)
		return
	}
	if got := status(""); got != http.StatusUnauthorized {
		t.Errorf("after the last token was revoked the hub says %d without one", got)
	}
}

// TestEachRoleMayDoWhatItIsFor asks every guarded route with every role.
func TestEachRoleMayDoWhatItIsFor(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	other := unique("cluster")
	if _, err := g.as(t, g.admin).Register(t.Context(), other, schema.Registration{}); err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{"admin": g.admin, "reader": g.reader, "pipeline": g.pipeline, "agent": g.agent}
	gate := "/api/v1/compliance?zero_targets=allow&repo=https://git.example/org/none&commit=" + commit(1)
	for _, c := range []struct {
		method, path, body string
		// may are the roles that are let in, whatever the answer is then.
		may string
	}{
		{http.MethodPut, "/api/v1/clusters/" + g.cluster, "{}", "admin agent"},
		{http.MethodPut, "/api/v1/clusters/" + other, "{}", "admin"},
		{http.MethodPost, "/api/v1/clusters/" + g.cluster + "/reports", "{}", "admin agent"},
		{http.MethodPost, "/api/v1/clusters/" + other + "/reports", "{}", "admin"},
		{http.MethodPost, "/api/v1/clusters/" + g.cluster + "/heartbeat", "{}", "admin agent"},
		{http.MethodPost, "/api/v1/clusters/" + other + "/heartbeat", "{}", "admin"},
		{http.MethodGet, "/api/v1/clusters", "", "admin reader"},
		{http.MethodGet, "/api/v1/clusters/" + g.cluster, "", "admin reader"},
		{http.MethodGet, "/api/v1/state/clusters", "", "admin reader"},
		{http.MethodGet, gate, "", "admin reader pipeline"},
		{http.MethodGet, strings.Replace(gate, "compliance?", "compliance/stream?", 1), "", "admin reader pipeline"},
		{http.MethodGet, "/api/v1/tokens", "", "admin"},
		{http.MethodPost, "/api/v1/tokens", "{}", "admin"},
		{http.MethodDelete, "/api/v1/tokens/nobody", "", "admin"},
		{http.MethodDelete, "/api/v1/clusters/nobody", "", "admin"},
	} {
		for role, token := range roles {
			code, text := request(t, c.method, g.url+c.path, token, c.body)
			let, want := code != http.StatusForbidden, strings.Contains(c.may, role)
			if let != want || code == http.StatusUnauthorized || code >= 500 {
				t.Errorf("%s %s by %s: %d %s", c.method, c.path, role, code, text)
			}
		}
	}
}

func TestADecommissionedClusterLeavesVerdictsUntilAnAdminBringsItBack(t *testing.T) {
	t.Parallel()
	g, repo := newGuarded(t), newRepo()
	agentOf := func(cluster, token string) *agent {
		a := &agent{client: g.as(t, token), cluster: cluster}
		a.register(t)
		return a
	}
	admin := g.as(t, g.admin)
	stays, leaves := agentOf(unique("stays"), g.admin), agentOf(g.cluster, g.agent)
	app := kustomization("app", repo, "app")
	stays.lists(t, at(app, commit(1), schema.StatusSuccess))
	leaves.lists(t, at(app, commit(1), schema.StatusInProgress))
	q := question(repo, "app", commit(1))
	if v := ask(t, admin, q); v.State != schema.Waiting || v.Counts.Total != 2 {
		t.Fatalf("want two to count: %s", show(v))
	}
	waits := later(t, admin, q, patience)
	polltest.Until(t, "somebody waits", func() bool { return gauge(t, g.hub, "landfall_gate_watchers") == 1 })
	if err := admin.Decommission(t.Context(), g.cluster); err != nil {
		t.Fatalf("decommissioning: %v", err)
	}
	if v := <-waits; v.verdict.State != schema.Passed || v.verdict.Counts.Total != 1 {
		t.Errorf("want who waits to hear that one is enough now: %s", show(v.verdict))
	}
	gone := func(when string) {
		t.Helper()
		if v := ask(t, admin, q); v.State != schema.Passed || v.Counts.Total != 1 {
			t.Errorf("%s: want one to count: %s", when, show(v))
		}
		_, err := leaves.try(t.Context(), schema.Report{Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{app}})
		refused(t, err, http.StatusGone, schema.CodeDecommissioned)
		_, err = leaves.client.Heartbeat(t.Context(), g.cluster, schema.Heartbeat{Epoch: leaves.epoch})
		refused(t, err, http.StatusGone, schema.CodeDecommissioned)
		_, err = leaves.client.Register(t.Context(), g.cluster, schema.Registration{})
		refused(t, err, http.StatusGone, schema.CodeDecommissioned)
		if rows := stateRows(t, admin, g.cluster); len(rows) != 0 {
			t.Errorf("%s: its state shows %v", when, rows)
		}
		_, listed := request(t, http.MethodGet, g.url+"/api/v1/clusters", g.admin, "")
		_, decommissioned := request(t, http.MethodGet, g.url+"/api/v1/clusters?status=decommissioned", g.admin, "")
		if strings.Contains(listed, g.cluster) || !strings.Contains(decommissioned, g.cluster) {
			t.Errorf("%s: it is listed with the decommissioned alone, not: %s and: %s", when, listed, decommissioned)
		}
	}
	gone("decommissioned")
	g.kill(t)
	g.start(t)
	gone("after a crash")

	old := leaves.epoch
	back := agentOf(g.cluster, g.admin)
	if back.epoch <= old {
		t.Errorf("epoch %d after %d: epochs increase", back.epoch, old)
	}
	if rows := stateRows(t, admin, g.cluster); len(rows) != 0 {
		t.Errorf("what was before its decommission came back: %v", rows)
	}
	leaves.epoch, leaves.sequence = back.epoch, 0
	leaves.lists(t, at(app, commit(1), schema.StatusFailure))
	if v := ask(t, admin, q); v.State != schema.Failed || v.Counts.Total != 2 {
		t.Errorf("want it to count again: %s", show(v))
	}
	leaves.register(t) // and its agent may register again by itself
}
