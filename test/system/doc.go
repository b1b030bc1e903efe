// Package system holds tests of the real programs: a hub as it is shipped, with
// its embedded engine, spoken to through the public HTTP API alone. Nothing here
// looks inside a program; what is counted in ClickHouse is counted by an engine
// of the test's own, after the hub has left the folder.
//
// Most tests share one hub and keep apart by names of their own; those that
// kill, fill or lock something have a hub to themselves.
package system
