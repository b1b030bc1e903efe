// Package gitops follows the GitOps repositories that the hub is told of: it
// keeps a mirror of each on disk, fetched on an interval and when somebody asks
// about a commit that is not there, and its commit graph in memory, which
// answers what hub/compliance asks of lineage and folders. What the mirror
// cannot tell is unknown, never guessed.
package gitops
