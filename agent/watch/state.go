package watch

import (
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusal is for how long a kind that was listed must be forbidden before it
// counts: an API server that starts refuses everything until it has read who may
// do what.
const refusal = 15 * time.Second

// A standing is what is known of whether a kind can be looked at. It is told
// what its lists and watches meet, and makes the State of it.
type standing struct {
	log     *slog.Logger
	changed func() // the state is another one

	mu    sync.Mutex
	state State
	// complete: a whole list was taken over since the kind was lost.
	complete bool
	// denied: the last word on a list or a watch was that it is forbidden.
	denied bool
	// refused is when the first word was said that it is forbidden.
	refused time.Time
	// listed: there was a complete list at some time.
	listed bool
	// asking is when the API server was asked what it did not grant yet; zero
	// while a watch runs.
	asking time.Time
	// failing: an error was logged, and none of the next ones need be.
	failing bool
}

func newStanding(log *slog.Logger, changed func()) *standing {
	return &standing{log: log, changed: changed, state: Syncing, asking: time.Now()}
}

// set changes the state under the lock; why is for the log.
func (s *standing) set(state State, why string, err error) {
	if s.state == state {
		return
	}
	args := []any{"was", string(s.state), "state", string(state), "why", why}
	if err != nil {
		args = append(args, "err", err)
	}
	level := s.log.Info
	if state == Unlisted {
		level = s.log.Warn
	}
	level("a kind changes its state", args...)
	s.state = state
	s.changed()
}

// serves: discovery found the kind, in a version that was not watched yet.
func (s *standing) serves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = time.Now()
	if s.state == Absent {
		s.set(Syncing, "the cluster serves it now", nil)
	}
}

// gone: discovery says that the kind is not served.
func (s *standing) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete, s.denied, s.failing, s.asking, s.refused = false, false, false, time.Time{}, time.Time{}
	if s.listed {
		s.set(Unlisted, "the cluster does not serve it any more", nil)
		return
	}
	s.set(Absent, "the cluster does not serve it", nil)
}

// asks: a list or a watch is asked for. Until it is granted, what is known may
// grow old.
func (s *standing) asks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking.IsZero() {
		s.asking = time.Now()
	}
}

// listedAll: a complete list was taken over.
func (s *standing) listedAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = true
	s.good()
}

// watches: a watch runs. One that begins with a list says nothing of what is
// known yet.
func (s *standing) watches(begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = false
	if !begins {
		s.good()
	}
}

// good is called under the lock. A list alone is not enough where watching is
// forbidden: it would be old at once.
func (s *standing) good() {
	if !s.complete || s.denied {
		return
	}
	s.listed, s.failing, s.asking, s.refused = true, false, time.Time{}, time.Time{}
	s.set(Listed, "it was listed", nil)
}

// fails: a list or a watch was not granted, or broke. An error that is part of
// how things go is not worth a warning.
func (s *standing) fails(verb string, err error, usual bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if apierrors.IsForbidden(err) {
		s.denied, s.complete = true, false
		if s.refused.IsZero() {
			s.refused = time.Now()
		}
		if s.state == Listed && time.Since(s.refused) < refusal {
			s.log.Debug("asking for objects is forbidden, it is tried again", "verb", verb, "err", err)
			return
		}
		s.set(Unlisted, "not allowed to "+verb+" it: the agent's role must grant list and watch", err)
		return
	}
	if s.failing || usual {
		s.log.Debug("asking for objects fails", "verb", verb, "err", err)
		return
	}
	s.failing = true
	s.log.Warn("asking for objects fails, it is tried again", "verb", verb, "err", err)
}

// expires reports whether nothing was granted for longer than stale: then the
// kind is lost until it was listed again.
func (s *standing) expires(stale time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking.IsZero() || time.Since(s.asking) < stale {
		return false
	}
	s.asking, s.complete = time.Now(), false
	s.set(Unlisted, "it could be neither listed nor watched for "+stale.String(), nil)
	return true
}

func (s *standing) now() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}
