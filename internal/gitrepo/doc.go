// Package gitrepo reads Git repositories: it follows refs of a repository in a
// mirror on disk, and writes folders of its commits into work directories. It
// is the only place that speaks Git.
//
// Addresses are http and https URLs, ssh URLs and host:path, file URLs and
// absolute folders. The last two run the program git (`git upload-pack`), which
// must be installed then; the others need nothing. A server may stall, lie, or
// send whatever it likes: every exchange is bounded in time and size.
//
// A SHA-256 repository is refused with ErrSHA256: go-git is compiled for one
// kind of hash.
package gitrepo
