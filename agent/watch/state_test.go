package watch

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestStanding(t *testing.T) {
	const stale = time.Minute
	type act func(s *standing)
	var (
		serves  act = func(s *standing) { s.serves() }
		gone    act = func(s *standing) { s.gone() }
		asks    act = func(s *standing) { s.asks() }
		list    act = func(s *standing) { s.asks(); s.listedAll() }
		begins  act = func(s *standing) { s.asks(); s.watches(true) }
		watches act = func(s *standing) { s.asks(); s.watches(false) }
		fails   act = func(s *standing) { s.asks(); s.fails("list", errors.New("no"), false) }
		denied  act = func(s *standing) {
			s.asks()
			s.fails("watch", apierrors.NewForbidden(gr(nil), "", errors.New("no")), false)
		}
		passes act = func(s *standing) { time.Sleep(stale); s.expires(stale) }
		half   act = func(s *standing) { time.Sleep(stale / 2); s.expires(stale) }
	)
	for name, c := range map[string]struct {
		reason string
		acts   []act
		want   State
	}{
		"new":                      {"nothing was said of it", nil, Syncing},
		"not served":               {"it is not there", []act{gone}, Absent},
		"served later":             {"it came", []act{gone, serves}, Syncing},
		"listed":                   {"it was", []act{serves, list}, Listed},
		"streaming":                {"a stream that begins is no list", []act{serves, begins}, Syncing},
		"streamed":                 {"a stream that brought all is", []act{serves, begins, list}, Listed},
		"goes":                     {"what was listed is not absent", []act{serves, list, gone}, Unlisted},
		"goes unlisted":            {"what was never listed is", []act{serves, fails, gone}, Absent},
		"goes forbidden":           {"so is what was forbidden", []act{serves, denied, gone}, Absent},
		"comes back":               {"it is not listed by being served", []act{serves, list, gone, serves}, Unlisted},
		"comes back, watched":      {"nor by being watched", []act{serves, list, gone, serves, watches}, Unlisted},
		"comes back, listed":       {"but by a list", []act{serves, list, gone, serves, list}, Listed},
		"another version":          {"the objects are the same", []act{serves, list, serves}, Listed},
		"forbidden":                {"at once", []act{serves, denied}, Unlisted},
		"forbidden later":          {"an API server that starts may say so", []act{serves, list, watches, denied}, Listed},
		"forbidden still":          {"it does not mean to grant it", []act{serves, list, watches, denied, half, denied}, Unlisted},
		"forbidden twice":          {"it was granted in between", []act{serves, list, denied, half, list, watches, denied}, Listed},
		"forbidden for long":       {"with nothing else said", []act{serves, list, watches, denied, passes}, Unlisted},
		"list without a watch":     {"it is old at once", []act{serves, denied, list}, Unlisted},
		"watch after":              {"it is followed now", []act{serves, denied, list, watches}, Listed},
		"watch without a list":     {"what went meanwhile is not known", []act{serves, list, denied, half, denied, watches}, Unlisted},
		"fails":                    {"for now", []act{serves, list, fails}, Listed},
		"fails for a while":        {"for now", []act{serves, list, fails, half}, Listed},
		"fails for long":           {"it is stale", []act{serves, list, fails, half, fails, half}, Unlisted},
		"no answer for long":       {"it is stale too", []act{serves, list, asks, passes}, Unlisted},
		"no answer from the start": {"nothing is known", []act{passes}, Unlisted},
		"never listed for long":    {"nothing is known", []act{serves, fails, passes}, Unlisted},
		"begins for long":          {"a stream that brings no end is no list", []act{serves, begins, passes}, Unlisted},
		"watched for long":         {"a watch that runs is current", []act{serves, list, watches, passes, passes}, Listed},
		"watched again":            {"what was missed came by the watch", []act{serves, list, fails, half, watches, half}, Listed},
		"stale, then watched":      {"it has to be listed again", []act{serves, list, fails, passes, watches}, Unlisted},
		"stale, then listed":       {"all is known again", []act{serves, list, fails, passes, list}, Listed},
		"absent for long":          {"nothing was asked", []act{gone, passes, passes}, Absent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				s := newStanding(slog.New(slog.DiscardHandler), func() { told++ })
				was, changes := s.now(), 0
				for _, act := range c.acts {
					act(s)
					if s.now() != was {
						was = s.now()
						changes++
					}
				}
				if was != c.want {
					t.Errorf("the state is %s, want %s: %s", was, c.want, c.reason)
				}
				if told != changes {
					t.Errorf("%d changes were told, there were %d", told, changes)
				}
			})
		})
	}
}
