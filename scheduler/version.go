package scheduler

import (
	"crypto/sha1" //nolint:gosec // Git's own hash: a version is the id of a Git tree
	"encoding/hex"
	"strconv"

	"github.com/landfall-hub/landfall/scheduler/render"
)

// version returns the id that Git gives a folder of these files, which are
// sorted. It can so be had of any commit of a GitOps repository, and asks
// nobody to keep a list.
func version(files []render.File) string {
	var tree []byte
	for _, f := range files {
		id := gitID("blob", f.Text)
		tree = append(tree, "100644 "+f.Name+"\x00"...)
		tree = append(tree, id[:]...)
	}
	id := gitID("tree", tree)
	return hex.EncodeToString(id[:])
}

func gitID(kind string, text []byte) (id [sha1.Size]byte) {
	h := sha1.New() //nolint:gosec // see above
	h.Write([]byte(kind + " " + strconv.Itoa(len(text)) + "\x00"))
	h.Write(text)
	h.Sum(id[:0])
	return id
}
