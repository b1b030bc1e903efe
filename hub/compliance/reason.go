package compliance

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

// cause says why an outcome is what it is. The text is made from it only for
// those that are listed.
type cause uint8

const (
	causeNone cause = iota
	causeSilent
	causeUnlisted
	causeStatus
	causeNeverReported
	causeReverted
	causeSuspended
	causeNoSuccess
	causeSourceError
	causeNeverApplied
	causeRolledBack
	causeNotFetched
	causeUnrelated
	causeUnknownCommit
	causeChild
)

// maxReason is where a reason is cut, in bytes: a list has up to 1,000 of them,
// and the whole message is with the reconciler's state.
const maxReason = 300

// reason returns the text beside a subscriber's outcome.
func (e *evaluation) reason(i int) string {
	s, j := &e.in.Subscribers[i], &e.judged[i]
	switch j.why {
	case causeSilent:
		silence := e.in.Now.Sub(s.Reporter.LastSeen).Round(time.Second)
		return "no heartbeat for " + schema.Duration(silence).String()
	case causeUnlisted:
		return s.Ref.Kind + " can no longer be listed"
	case causeStatus:
		return ownReason(s)
	case causeNeverReported:
		return "never reported"
	case causeReverted:
		return "reverted"
	case causeSuspended:
		return "suspended"
	case causeNoSuccess:
		return "no success at this commit yet"
	case causeSourceError:
		return shorten(s.SourceError)
	case causeNeverApplied:
		return "never applied"
	case causeRolledBack:
		return "rolled back"
	case causeNotFetched:
		return "not fetched"
	case causeUnrelated:
		return "its commit and this one are not related"
	case causeUnknownCommit:
		return "its commit or this one is not in the mirror"
	case causeChild:
		text := "child " + j.child.ref.String() + ": " + j.child.reason
		if more := j.child.count - 1; more > 0 {
			text += ", and " + strconv.Itoa(more) + " more"
		}
		return text
	}
	return ""
}

// ownReason is what a reconciler says of itself.
func ownReason(s *Subscriber) string {
	switch {
	case s.Reason == "" && s.Message == "":
		return string(s.Status)
	case s.Reason == "":
		return shorten(s.Message)
	case s.Message == "":
		return shorten(s.Reason)
	}
	return shorten(s.Reason + ": " + s.Message)
}

// shorten cuts a text at the border of a character.
func shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	n := maxReason
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
