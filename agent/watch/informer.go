package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// pageSize bounds what is decoded at once where an API server cannot stream
	// lists: 50 objects of 10 KB are 0.5 MB as JSON, and ten times that decoded.
	pageSize = 50
	// minWatch is what a watch lasts at least: one of less than a second that
	// brought nothing looks like an error.
	minWatch = 2 * time.Second
	// grace is how long a watch may outlive the time that the API server was
	// asked to end it at, before the connection counts as dead.
	grace = 10 * time.Second
)

// backoff between tries; one agent asks for a handful of kinds, and one that
// comes back late shows old news.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 10 * time.Second}

// backoffReset is how long must pass without a pause before tries count as the
// first ones again.
const backoffReset = 2 * time.Minute

// An informer keeps what the API server holds of one kind. It has one reflector
// at a time, for the version that is served now; the objects outlive it.
type informer struct {
	Kind
	client   dynamic.Interface
	stale    time.Duration // see Options
	renew    time.Duration // how long a watch lasts at least
	metrics  *metrics
	look     func() // what is served may have changed
	store    *store
	standing *standing

	// Owned by the goroutine that calls serve, gone, expire and stop.
	version string
	end     func()

	// begun is a watch that is bringing its list. The reflector's own.
	begun *stream

	// listing is held during a list: the reflector does not wait for it.
	listing sync.Mutex
}

// serve makes the informer follow the version that is served.
func (k *informer) serve(ctx context.Context, version string) {
	if k.version == version {
		return
	}
	k.standing.serves()
	k.start(ctx, version)
}

// gone ends the informer's reflector: the kind is not served.
func (k *informer) gone() {
	k.stop()
	k.standing.gone()
}

// expire gives up what is known as current when nothing was granted for too
// long. The kind is listed anew then: the stream it had may be broken.
func (k *informer) expire(ctx context.Context) {
	if k.standing.expires(k.stale) && k.version != "" {
		k.start(ctx, k.version)
	}
}

// start runs a reflector in place of the one that ran before. What was known
// stays until the new one has a complete list.
func (k *informer) start(ctx context.Context, version string) {
	k.stop()
	k.version = version
	resource := k.client.Resource(gvr.GroupVersionResource{Group: k.Group, Version: version, Resource: k.Resource})
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return k.list(ctx, resource, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return k.watch(ctx, resource, o)
		},
	}, nil, k.store, cache.ReflectorOptions{
		Name: k.Kind.Kind, TypeDescription: k.Group + "/" + version + " " + k.Resource, Backoff: &backoff,
	})
	reflector.WatchListPageSize = pageSize

	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Not the reflector's own Run: what fails is counted and told here.
		_ = backoff.DelayWithReset(clock.RealClock{}, backoffReset).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
				k.standing.log.Debug("a watch ended", "version", version, "err", err)
			}
			return false, nil
		})
		k.listing.Lock() // a list that was under way has ended
		defer k.listing.Unlock()
	}()
	k.end = func() { cancel(); <-done }
}

// stop ends the reflector and waits for it.
func (k *informer) stop() {
	if k.end != nil {
		k.end()
	}
	k.version, k.end = "", nil
}

// list reads one page, packed. It always asks for the newest state: from an API
// server's cache a list comes whole, whatever the limit.
func (k *informer) list(ctx context.Context, resource dynamic.ResourceInterface, o metav1.ListOptions) (runtime.Object, error) {
	k.listing.Lock()
	defer k.listing.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	k.standing.asks()
	page, err := resource.List(ctx, o)
	if err != nil {
		k.failed(ctx, "list", err, false)
		return nil, err
	}
	out := &internalversion.List{Items: make([]runtime.Object, 0, len(page.Items))}
	out.ResourceVersion, out.Continue = page.GetResourceVersion(), page.GetContinue()
	for i := range page.Items {
		p, err := k.store.pack(&page.Items[i])
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, p)
	}
	return out, nil
}

// watch opens a watch. It is opened anew before long, because an API server
// asks whether it is allowed only then, and because a connection may be dead
// without a word. One that begins with a list has time to bring it first.
func (k *informer) watch(ctx context.Context, resource dynamic.ResourceInterface, o metav1.ListOptions) (watch.Interface, error) {
	begins := o.SendInitialEvents != nil && *o.SendInitialEvents
	lasts := k.stale
	if !begins {
		lasts = k.lasts()
	}
	seconds := int64(math.Ceil(lasts.Seconds()))
	o.TimeoutSeconds = &seconds
	k.standing.asks()
	w, err := resource.Watch(ctx, o)
	if err != nil {
		k.failed(ctx, "watch", err, begins) // a list is tried then
		if begins {
			// What kind of error it is would make the reflector pause here
			// without looking at the context. It pauses after the list.
			err = errors.New(err.Error())
		}
		return nil, fmt.Errorf("watching %s: %w", k.Resource, err)
	}
	s := newStream(w, func(err error) {
		// That changes are forgotten after some minutes is how it is meant.
		k.failed(ctx, "watch", err, apierrors.IsResourceExpired(err) || apierrors.IsGone(err))
	})
	k.standing.watches(begins)
	k.begun = nil
	if begins {
		k.begun = s
		return s, nil
	}
	s.endAfter(time.Duration(seconds)*time.Second + grace)
	return s, nil
}

// lasts is how long a watch may go on: a time between one and two discoveries.
func (k *informer) lasts() time.Duration {
	return max(minWatch, k.renew+rand.N(k.renew)) // #nosec G404 -- it spreads load, it guards nothing
}

// listed is called by the store when it has taken over a complete list.
func (k *informer) listed() {
	k.standing.listedAll()
	if k.begun != nil {
		k.begun.endAfter(k.lasts())
		k.begun = nil
	}
}

func (k *informer) failed(ctx context.Context, verb string, err error, usual bool) {
	if ctx.Err() != nil {
		return // it was told to stop
	}
	k.metrics.errors.WithLabelValues(k.Kind.Kind, verb, reason(err)).Inc()
	k.standing.fails(verb, err, usual)
	if apierrors.IsNotFound(err) {
		k.look()
	}
}

// size is for metrics.
func (k *informer) size() (state State, objects, bytes int) {
	objects, bytes = k.store.len()
	return k.standing.now(), objects, bytes
}
