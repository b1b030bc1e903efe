// Package outbox holds the tests that need both sides of the stream: the agent's
// outbox, and the hub's own ingester, fleet and fold over a store in memory.
// They stand here because agent and hub never reach one another, not even in
// their tests.
package outbox
