package publish

import (
	"fmt"
	"slices"
	"strings"
)

func (s *Summary) sort() {
	for _, folders := range [][]string{s.Added, s.Changed, s.Deleted, s.Kept, s.Missing, s.Adopted, s.Foreign} {
		slices.Sort(folders)
	}
}

// mostListed is how many folders of a kind a commit's message names.
const mostListed = 20

// text is what a commit's message says of the summary, after its first line.
func (s *Summary) text() string {
	var b strings.Builder
	for _, part := range []struct {
		word    string
		folders []string
	}{{"added", s.Added}, {"changed", s.Changed}, {"deleted", s.Deleted}, {"kept as it was, because it could not be planned", s.Kept}} {
		if len(part.folders) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %d\n", part.word, len(part.folders))
		for i, folder := range part.folders {
			if i == mostListed {
				fmt.Fprintf(&b, "  and %d more\n", len(part.folders)-i)
				break
			}
			fmt.Fprintf(&b, "  %s\n", folder)
		}
	}
	if b.Len() == 0 {
		return "\n"
	}
	return "\n" + b.String()
}
