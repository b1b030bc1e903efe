// Package catalog knows what commits mean. It reads the histories of the
// repositories that are followed, commit by commit along their first parents,
// and notes which deployment targets they name, which workload version each
// target carries from which commit on, and which configurations there are. What
// it knows it keeps in an Index in memory, for the hub's own questions, and in
// ClickHouse, for everybody's. Nothing waits for it: a verdict needs only the
// commit graph, and a report gets its names whenever they come.
package catalog
