// Package outbox brings a cluster's facts to the hub and keeps the two sides
// equal. It knows the wire and nothing of Kubernetes.
//
// What is put waits in a queue of batches, each of which is a message to come:
// no reconciler stands in one twice, and what was put together stays together,
// so that no parent's success travels before the children it was judged by. One
// message is on its way at a time, frozen until the hub has answered, because a
// repeated sequence must mean the same. What the hub refuses for good of one
// reconciler is reported as unknown in its place, and never holds up the rest.
//
// A ledger holds a digest per reconciler of what the hub has. Heartbeats carry
// their sum; when the hub's differs it asks for a snapshot, which is read anew
// from the State, ordered so that children come before their owners.
package outbox
