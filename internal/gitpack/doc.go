// Package gitpack keeps the packs of a bare Git repository: it takes those that
// servers send, in memory that does not grow with the files in them, and joins
// them when there are many.
//
// A pack is a file of objects with an index beside it, pack-SUM.pack and
// pack-SUM.idx. An index is written before its pack appears, so that whoever
// sees a pack can read it; what a crash leaves has a name that begins with
// tmp_pack_, or is an index without its pack: Sweep removes both.
package gitpack
