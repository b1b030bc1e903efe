// Package polltest lets tests wait for what they can only look at: a file, an
// answer over HTTP, a process.
package polltest

import (
	"testing"
	"time"
)

const (
	// Patience is how long Until waits: far longer than anything takes.
	Patience = 2 * time.Minute
	// pause leaves the processor to those that are waited for.
	pause = 10 * time.Millisecond
)

// Until looks again and again until it is so. It ends the test, with what it
// waited for, when that has not come after Patience.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	over := time.NewTimer(Patience)
	defer over.Stop()
	again := time.NewTicker(pause)
	defer again.Stop()
	for !so() {
		select {
		case <-over.C:
			t.Fatalf("not within %s: %s", Patience, what)
		case <-again.C:
		}
	}
}
