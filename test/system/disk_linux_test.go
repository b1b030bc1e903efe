package system

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// TestAFullDiskRefusesReportsAndLosesNone fills the disk under a hub, then frees
// it again.
func TestAFullDiskRefusesReportsAndLosesNone(t *testing.T) {
	t.Parallel()
	needPrograms(t)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("a small disk cannot be mounted here (root is needed): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	h, repo := newHubOn(t, filepath.Join(disk, "data")), newRepo()
	a := newAgent(t, h)
	stored := map[string]bool{}
	// send reports one more reconciler, and remembers it when it is stored.
	send := func() error {
		name := fmt.Sprintf("app-%d", len(stored))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		k := at(kustomization(name, repo, "app"), commit(1), schema.StatusSuccess)
		_, err := a.try(ctx, schema.Report{Mode: schema.ModeDelta, Reconcilers: []schema.Reconciler{k}})
		if err != nil {
			a.sequence-- // the same message again
			return err
		}
		stored["Kustomization/flux-system/"+name] = true
		return nil
	}
	for range 10 {
		if err := send(); err != nil {
			t.Fatalf("reporting: %v", err)
		}
	}

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	began := time.Now()
	var refusal error
	for range 100 { // the last blocks may still take a few
		if refusal = send(); refusal != nil {
			break
		}
		fill(t, filler)
	}
	t.Logf("refused after %s, with %d stored: %v", time.Since(began), len(stored), refusal)
	if hubclient.Status(refusal) != http.StatusServiceUnavailable || hubclient.RetryAfter(refusal) == 0 {
		t.Errorf("want a full disk to be 503 with Retry-After, got %v", refusal)
	}
	if status, _ := request(t, http.MethodGet, h.url+"/healthz", "", ""); status != http.StatusOK {
		t.Errorf("/healthz says %d on a full disk", status)
	}
	if !h.log.says("pace") { // "no space left", "not enough space": it may be long ago when the machine is slow
		t.Error("the log does not speak of space")
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "a report is stored after space is freed", func() bool { return send() == nil })
	check := func(when string) {
		t.Helper()
		rows := stateRows(t, a.client, a.cluster)
		for name := range stored {
			if _, there := rows[name]; !there {
				t.Errorf("%s: %s was acknowledged and is not there", when, name)
			}
		}
		if len(rows) != len(stored) {
			t.Errorf("%s: %d rows, %d were acknowledged", when, len(rows), len(stored))
		}
	}
	check("after space was freed")
	h.kill(t)
	h.start(t)
	check("after a crash")
}

// fill writes to a file until nothing more fits.
func fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for size := len(block); size >= 1024; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
}
