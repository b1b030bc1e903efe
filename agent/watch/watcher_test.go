package watch

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestObjects(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.serve(gitRepository, "v1")
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		server.put(gitRepository, "a", "one", "1")
		b := run(t, server)
		b.wantHeard(t, "GitRepository/a/one", "Kustomization/a/one", "Kustomization/a/two")
		b.wantState(t, kustomization, Listed)
		b.wantState(t, gitRepository, Listed)
		b.wantKeys(t, kustomization, "a/one=1", "a/two=1")

		server.put(kustomization, "a", "one", "2")
		b.wantHeard(t, "Kustomization/a/one")
		server.put(kustomization, "b", "new", "1")
		b.wantHeard(t, "Kustomization/b/new")
		server.remove(kustomization, "a", "two")
		b.wantHeard(t, "Kustomization/a/two")
		b.wantKeys(t, kustomization, "a/one=2", "b/new=1")
		server.put(kustomization, "a", "one", "2")
		b.wantHeard(t) // only what is trimmed away has changed

		obj, _ := b.w.Get(Key{Kind: "Kustomization", Namespace: "a", Name: "one"})
		want := map[string]any{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"namespace": "a", "name": "one"}, "spec": map[string]any{"value": "2"},
		}
		if diff := cmp.Diff(want, obj.Object); diff != "" {
			t.Errorf("the object (-want +got):\n%s", diff)
		}
		obj.Object["spec"] = "mine"
		b.wantKeys(t, kustomization, "a/one=2", "b/new=1")
		if _, ok := b.w.Get(Key{Kind: "Kustomization", Namespace: "a", Name: "two"}); ok {
			t.Error("an object that went is known")
		}
		if _, ok := b.w.Get(Key{Kind: "Secret", Namespace: "a", Name: "two"}); ok || b.w.Keys("Secret") != nil {
			t.Error("a kind that is not watched is known")
		}
	})
}

// A list of several pages is taken over as one.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer(t)
		server.streams = false
		server.serve(kustomization, "v1")
		for i := range 2*pageSize + 1 {
			server.put(kustomization, "a", fmt.Sprintf("n%03d", i), "1")
		}
		b := run(t, server)
		if n := len(b.hears()); n != 2*pageSize+1 {
			t.Errorf("%d keys were told", n)
		}
		b.wantState(t, kustomization, Listed)
		if n := server.count("list"); n != 3 {
			t.Errorf("%d pages were asked for", n)
		}
	})
}

// CRDs come and go while the agent runs; no object is concluded to be gone from
// that its kind is.
func TestCRDs(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		b := run(t, server)
		b.wantState(t, kustomization, Absent)
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		server.serve(kustomization, "v1")
		time.Sleep(DefaultDiscovery)
		b.wantState(t, kustomization, Listed)
		b.wantHeard(t, "Kustomization/a/one", "Kustomization/a/two")

		server.serve(kustomization) // its watches end, and are not found again
		time.Sleep(time.Second)
		b.wantState(t, kustomization, Unlisted)
		b.wantState(t, gitRepository, Absent)
		b.wantHeard(t)
		b.wantKeys(t, kustomization, "a/one=1", "a/two=1")

		server.remove(kustomization, "a", "one")
		server.put(kustomization, "a", "two", "2")
		server.serve(kustomization, "v1")
		time.Sleep(DefaultDiscovery)
		b.wantState(t, kustomization, Listed)
		b.wantHeard(t, "Kustomization/a/one", "Kustomization/a/two")
		b.wantKeys(t, kustomization, "a/two=2")
	})
}

// A kind that was never listed is absent when it goes, whatever was tried.
func TestCRDNeverListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer(t)
		server.serve(kustomization, "v1")
		server.setFault(forbid("list", "watch"))
		b := run(t, server)
		b.wantState(t, kustomization, Unlisted)
		server.serve(kustomization)
		time.Sleep(DefaultDiscovery)
		b.wantState(t, kustomization, Absent)
	})
}

// A new version of a CRD is followed: the objects are the same ones.
func TestVersions(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1beta2")
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		b := run(t, server)
		b.hears()
		gone, unchanged := false, b.settled()
		for _, step := range [][]string{{"v1", "v1beta2"}, {"v1"}} {
			server.serve(kustomization, step...)
			for range 2 * DefaultDiscovery / time.Second {
				time.Sleep(time.Second)
				synctest.Wait()
				gone = gone || len(b.w.Keys("Kustomization")) != 2
			}
		}
		unchanged(t)
		if gone {
			t.Error("objects were lost on the way")
		}
		b.wantHeard(t, "Kustomization/a/one", "Kustomization/a/two") // their apiVersion is another
		obj, _ := b.w.Get(Key{Kind: "Kustomization", Namespace: "a", Name: "one"})
		if obj.GetAPIVersion() != "kustomize.toolkit.fluxcd.io/v1" {
			t.Errorf("the object is of %s", obj.GetAPIVersion())
		}
		server.put(kustomization, "a", "one", "2")
		b.wantHeard(t, "Kustomization/a/one")
	})
}

// The version asked for goes before the next look: that the API server does not
// find it is enough to look again.
func TestVersionGoes(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1beta2")
		server.put(kustomization, "a", "one", "1")
		b := run(t, server)
		b.hears()
		server.serve(kustomization, "v1")
		server.remove(kustomization, "a", "one")
		time.Sleep(2 * time.Second)
		b.wantState(t, kustomization, Listed)
		b.wantHeard(t, "Kustomization/a/one")
		b.wantKeys(t, kustomization)
	})
}

func TestForbidden(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		streams bool
		verbs   []string
		want    State
	}{
		"both":               {"nothing can be said of it", true, []string{"list", "watch"}, Unlisted},
		"both, paged":        {"nothing can be said of it", false, []string{"list", "watch"}, Unlisted},
		"watch only":         {"a list alone is old at once", true, []string{"watch"}, Unlisted},
		"watch only, paged":  {"a list alone is old at once", false, []string{"watch"}, Unlisted},
		"list only":          {"a watch brings the list", true, []string{"list"}, Listed},
		"list only, paged":   {"there is no list", false, []string{"list"}, Unlisted},
		"nothing":            {"all is well", true, nil, Listed},
		"nothing, but paged": {"all is well", false, nil, Listed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newAPIServer(t)
				server.streams = c.streams
				server.serve(kustomization, "v1")
				server.put(kustomization, "a", "one", "1")
				server.setFault(forbid(c.verbs...))
				b := run(t, server)
				unchanged := b.settled()
				for range 60 {
					if b.wantState(t, kustomization, c.want); t.Failed() {
						t.Fatal(c.reason)
					}
					time.Sleep(time.Second)
				}
				unchanged(t)
				server.setFault(nil)
				time.Sleep(time.Minute)
				b.wantState(t, kustomization, Listed)
				b.wantHeard(t, "Kustomization/a/one")
			})
		})
	}
}

// A permission that is taken away shows when the watch is opened anew. What
// went meanwhile is told when the kind is listed again.
func TestPermissionLost(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		b := run(t, server)
		b.hears()
		server.setFault(forbid("list", "watch"))
		time.Sleep(2*DefaultDiscovery + grace + 2*refusal)
		b.wantState(t, kustomization, Unlisted)
		server.remove(kustomization, "a", "one")
		time.Sleep(time.Hour)
		b.wantState(t, kustomization, Unlisted)
		b.wantHeard(t)
		b.wantKeys(t, kustomization, "a/one=1", "a/two=1")
		server.setFault(nil)
		time.Sleep(time.Minute)
		b.wantState(t, kustomization, Listed)
		b.wantHeard(t, "Kustomization/a/one")
		b.wantKeys(t, kustomization, "a/two=1")
	})
}

// However often watches are opened anew, the list is taken once.
func TestListedOnce(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		b := run(t, server, func(o *Options) { o.Discovery = 100 * time.Millisecond })
		time.Sleep(time.Minute)
		synctest.Wait()
		b.stop()
		lists := server.count("list /") // where it is streamed, by the first watch
		if want := map[bool]int{true: 0, false: 1}[server.streams]; lists != want {
			t.Errorf("%d lists, want %d", lists, want)
		}
		if n := server.count("watch /"); n < 20 || n > 40 {
			t.Errorf("%d watches in a minute", n)
		}
		if n := server.count("initial /"); n != 1 {
			t.Errorf("%d watches that begin with a list", n)
		}
	})
}

// States come without a list that was cut short: half of one is none.
func TestListCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer(t)
		server.streams = false
		server.serve(kustomization, "v1")
		for i := range 2 * pageSize {
			server.put(kustomization, "a", fmt.Sprintf("n%03d", i), "1")
		}
		secondPage := func(verb string, w http.ResponseWriter, r *http.Request) bool {
			if verb != "list" || r.URL.Query().Get("continue") == "" {
				return false
			}
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		server.setFault(secondPage)
		b := run(t, server)
		b.wantState(t, kustomization, Syncing)
		b.wantHeard(t)
		server.setFault(nil)
		time.Sleep(time.Minute)
		b.wantState(t, kustomization, Listed)
		if n := len(b.hears()); n != 2*pageSize {
			t.Errorf("%d keys were told", n)
		}
		server.remove(kustomization, "a", "n000")
		b.hears()
		server.setFault(secondPage)
		server.compact()
		time.Sleep(time.Minute)
		b.wantState(t, kustomization, Listed)
		b.wantHeard(t) // the second hundred is not gone
	})
}

func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer(t)
		server.serve(gitRepository, "v1")
		b := run(t, server)
		synctest.Wait()
		got := []string{}
		for _, kind := range slices.Sorted(maps.Keys(b.w.States())) {
			got = append(got, kind+" "+string(b.w.States()[kind]))
		}
		if want := "GitRepository listed, Kustomization absent"; strings.Join(got, ", ") != want {
			t.Errorf("states are %v, want %s", got, want)
		}
	})
}
