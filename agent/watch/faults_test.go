package watch

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An API server that is away for a while takes nothing with it; away for longer
// than Stale, what is known of it is no longer current.
func TestServerDown(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		b := run(t, server)
		b.hears()

		unchanged := b.settled()
		server.setDown(true)
		time.Sleep(DefaultStale / 2)
		b.wantState(t, kustomization, Listed)
		b.wantState(t, gitRepository, Absent)
		server.put(kustomization, "a", "one", "2")
		server.setDown(false)
		time.Sleep(time.Minute)
		unchanged(t)
		b.wantHeard(t, "Kustomization/a/one")

		server.setDown(true)
		time.Sleep(DefaultStale + DefaultDiscovery)
		b.wantState(t, kustomization, Unlisted)
		server.remove(kustomization, "a", "one")
		time.Sleep(3 * DefaultStale)
		b.wantState(t, kustomization, Unlisted)
		b.wantKeys(t, kustomization, "a/one=2", "a/two=1")
		b.wantHeard(t)
		server.setDown(false)
		time.Sleep(time.Minute)
		b.wantState(t, kustomization, Listed)
		b.wantHeard(t, "Kustomization/a/one")
		b.wantKeys(t, kustomization, "a/two=1")
	})
}

// An API server that starts refuses everything at first.
func TestServerStarts(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		b := run(t, server)
		b.hears()
		unchanged := b.settled()
		server.setDown(true)
		time.Sleep(time.Minute)
		server.put(kustomization, "a", "one", "2")
		server.setFault(forbid("list", "watch", "discover"))
		server.setDown(false)
		time.Sleep(refusal)
		server.setFault(nil)
		time.Sleep(time.Minute)
		unchanged(t)
		b.wantHeard(t, "Kustomization/a/one")
	})
}

// An API server that is away at the start: nothing can be said of any kind, and
// after a while that is said.
func TestServerDownFromTheStart(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		server.setDown(true)
		b := run(t, server)
		b.wantState(t, kustomization, Syncing)
		b.wantState(t, gitRepository, Syncing)
		time.Sleep(DefaultStale + DefaultDiscovery)
		b.wantState(t, kustomization, Unlisted)
		b.wantState(t, gitRepository, Unlisted)
		server.setDown(false)
		time.Sleep(time.Minute)
		b.wantState(t, kustomization, Listed)
		b.wantState(t, gitRepository, Absent)
		b.wantHeard(t, "Kustomization/a/one")
	})
}

// The changes since the last one seen are forgotten: the list is taken anew, and
// what went in between is told.
func TestGone(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		b := run(t, server)
		b.hears()
		unchanged := b.settled()
		server.setDown(true)
		time.Sleep(time.Second)
		server.remove(kustomization, "a", "one")
		server.put(kustomization, "a", "two", "2")
		server.put(gitRepository, "a", "other", "1")
		server.compact()
		server.setDown(false)
		time.Sleep(time.Minute)
		unchanged(t)
		b.wantHeard(t, "Kustomization/a/one", "Kustomization/a/two")
		b.wantKeys(t, kustomization, "a/two=2")
	})
}

// TestLostAfterwards has an API server that worked begin to answer lists and
// watches badly: what is known is kept, is not current for ever, and is put
// right when the server is well again.
func TestLostAfterwards(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		reason string
		answer http.HandlerFunc
	}{
		"hangs":        {"it takes the question and says nothing", hang},
		"hangs inside": {"it begins to answer and says nothing", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK); hang(w, r) }},
		"garbage": {"a proxy in between shows a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>welcome</html>")
		}},
		"garbage as JSON": {"what is no list is none", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"hello": "world"}`)
		}},
		"half of an answer": {"what is cut off is none", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"KustomizationList","apiVersion":"kustomize.toolkit.fluxcd.io/v1","metadata":{"resourceVersion":"7"},"items":[`)
		}},
		"broken":       {"its storage is away", func(w http.ResponseWriter, _ *http.Request) { refuse(w, internalError()) }},
		"unauthorized": {"its word on us is not final", func(w http.ResponseWriter, _ *http.Request) { refuse(w, apierrors.NewUnauthorized("")) }},
		"overloaded": {"it asks to come back", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			refuse(w, apierrors.NewTooManyRequests("", 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, server *apiServer) {
				server.serve(kustomization, "v1")
				server.put(kustomization, "a", "one", "1")
				server.put(kustomization, "a", "two", "1")
				b := run(t, server)
				b.hears()
				server.setFault(func(verb string, w http.ResponseWriter, r *http.Request) bool {
					if verb != "discover" {
						c.answer(w, r)
					}
					return verb != "discover"
				})
				server.kickWatches()
				time.Sleep(DefaultStale / 2)
				b.wantState(t, kustomization, Listed)
				time.Sleep(DefaultStale/2 + DefaultDiscovery)
				b.wantState(t, kustomization, Unlisted)
				server.remove(kustomization, "a", "one")
				time.Sleep(3 * DefaultStale)
				b.wantState(t, kustomization, Unlisted)
				b.wantHeard(t)
				b.wantKeys(t, kustomization, "a/one=1", "a/two=1")
				server.setFault(nil)
				time.Sleep(2 * DefaultStale)
				b.wantState(t, kustomization, Listed)
				b.wantHeard(t, "Kustomization/a/one")
				if t.Failed() {
					t.Log(c.reason)
				}
			})
		})
	}
}

func internalError() *apierrors.StatusError {
	return apierrors.NewInternalError(io.ErrUnexpectedEOF)
}

// A watch that breaks inside, in whatever way, loses nothing.
func TestWatchBreaks(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		says   func(w http.ResponseWriter)
	}{
		"garbage":  {"no event", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "}}}}") }},
		"half":     {"half an event", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"type":"DELETED","object":{"kind"`) }},
		"nameless": {"an event about nothing", func(w http.ResponseWriter) { send(w, "DELETED", map[string]any{}) }},
		"expired":  {"410 in the stream", func(w http.ResponseWriter) { send(w, "ERROR", status(apierrors.NewResourceExpired("old"))) }},
		"internal": {"500 in the stream", func(w http.ResponseWriter) { send(w, "ERROR", status(internalError())) }},
		"no more":  {"it ends at once", func(http.ResponseWriter) {}},
		"strange one": {"an event nobody knows", func(w http.ResponseWriter) {
			send(w, "EXPLODED", map[string]any{"kind": "Kustomization", "apiVersion": "x/v1"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, server *apiServer) {
				server.serve(kustomization, "v1")
				server.put(kustomization, "a", "one", "1")
				server.put(kustomization, "a", "two", "1")
				b := run(t, server)
				b.hears()
				unchanged := b.settled()
				server.setFault(func(verb string, w http.ResponseWriter, r *http.Request) bool {
					if verb != "watch" || r.URL.Query().Get("sendInitialEvents") == "true" {
						return false
					}
					w.WriteHeader(http.StatusOK)
					c.says(w)
					return true
				})
				server.kickWatches()
				time.Sleep(time.Minute)
				b.wantKeys(t, kustomization, "a/one=1", "a/two=1")
				b.wantHeard(t)
				server.remove(kustomization, "a", "two")
				server.setFault(nil)
				time.Sleep(time.Minute)
				unchanged(t)
				b.wantHeard(t, "Kustomization/a/two")
				b.wantKeys(t, kustomization, "a/one=1")
				if t.Failed() {
					t.Log(c.reason)
				}
			})
		})
	}
}

// A connection that died without a word is given up before what it brought is
// stale, whatever time the API server was asked to end the watch after.
func TestDeadStream(t *testing.T) {
	both(t, func(t *testing.T, server *apiServer) {
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		var dead atomic.Int32
		server.setFault(func(verb string, w http.ResponseWriter, r *http.Request) bool {
			if verb != "watch" || r.URL.Query().Get("sendInitialEvents") == "true" {
				return false
			}
			server.setFault(nil)
			dead.Add(1)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		})
		b := run(t, server)
		b.hears()
		unchanged := b.settled()
		time.Sleep(2 * DefaultDiscovery) // where the list was streamed, its watch ends first
		synctest.Wait()
		if n := dead.Load(); n != 1 {
			t.Fatalf("%d watches were dead", n)
		}
		server.put(kustomization, "a", "one", "2")
		time.Sleep(2*DefaultDiscovery + grace + time.Second)
		b.wantHeard(t, "Kustomization/a/one")
		unchanged(t)
	})
}

// What cannot be told of what is served changes nothing.
func TestDiscoveryFails(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"broken":       func(w http.ResponseWriter, _ *http.Request) { refuse(w, internalError()) },
		"forbidden":    func(w http.ResponseWriter, r *http.Request) { forbid("x")("x", w, r) },
		"garbage":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"empty object": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
		"hangs":        func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"versions only": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/"+kustomization.Group {
				refuse(w, internalError())
				return
			}
			_, _ = io.WriteString(w, `{"name":"`+kustomization.Group+`","versions":[{"version":"v1"}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, server *apiServer) {
				server.serve(kustomization, "v1")
				server.put(kustomization, "a", "one", "1")
				b := run(t, server)
				b.hears()
				server.setFault(func(verb string, w http.ResponseWriter, r *http.Request) bool {
					if verb == "discover" {
						answer(w, r)
					}
					return verb == "discover"
				})
				time.Sleep(3 * DefaultStale)
				b.wantState(t, kustomization, Listed)
				server.put(kustomization, "a", "two", "1")
				b.wantHeard(t, "Kustomization/a/two")
			})
		})
	}
}

// Run ends when it is told to, whatever the API server does meanwhile: no time
// passes until then.
func TestRunEnds(t *testing.T) {
	hang := func(_ string, _ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	for name, prepare := range map[string]func(s *apiServer){
		"watching":   func(*apiServer) {},
		"down":       func(s *apiServer) { s.setDown(true) },
		"hangs":      func(s *apiServer) { s.setFault(hang); s.kickWatches() },
		"forbids":    func(s *apiServer) { s.setFault(forbid("list", "watch")); s.kickWatches() },
		"serves not": func(s *apiServer) { s.serve(kustomization) },
		"overloaded": func(s *apiServer) {
			s.setFault(func(_ string, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "100")
				refuse(w, apierrors.NewTooManyRequests("", 100))
				return true
			})
			s.kickWatches()
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, server *apiServer) {
				server.serve(kustomization, "v1")
				for _, when := range []time.Duration{0, time.Millisecond, time.Second, 2 * DefaultStale} {
					b := run(t, server)
					synctest.Wait()
					prepare(server)
					time.Sleep(when)
					began := time.Now()
					b.stop()
					if took := time.Since(began); took != 0 {
						t.Errorf("told to end after %s, it took %s", when, took)
					}
					server.setDown(false)
					server.setFault(nil)
					server.serve(kustomization, "v1")
				}
			})
		})
	}
}

// What is queued when Run ends is not handed on.
func TestRunEndsWithWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer(t)
		server.serve(kustomization, "v1")
		server.put(kustomization, "a", "one", "1")
		server.put(kustomization, "a", "two", "1")
		told, proceed := 0, make(chan struct{})
		w, err := New(Options{
			Config: server.config(), Kinds: []Kind{kustomization},
			OnObject: func(Key) { told++; <-proceed }, OnKinds: func() {},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(proceed)
		if err := <-done; err != nil || told != 1 {
			t.Errorf("%d keys were told, and Run says %v", told, err)
		}
	})
}
