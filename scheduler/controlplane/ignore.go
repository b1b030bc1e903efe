package controlplane

import (
	"path"
	"slices"
	"strings"
)

const (
	// ignoreFile holds, in the syntax of .gitignore, what is not to be read.
	ignoreFile = ".sourceignore"
	// mostPatterns is how many patterns the ignore files of a tree may hold.
	mostPatterns = 10_000
)

// ignores are the patterns of all ignore files of a tree.
type ignores struct {
	// below holds the patterns of the folder that an ignore file stands in; the
	// tree's root is "".
	below map[string][]pattern
	// folders remembers which folders are ignored.
	folders map[string]bool
}

// pattern is a line of an ignore file.
type pattern struct {
	// segments are matched one to one with those of a path; "**" is any number
	// of them.
	segments []string
	// again takes back what earlier patterns ignored (!).
	again      bool
	folderOnly bool
}

// newIgnores reads the ignore files among the files of a tree.
func newIgnores(files []File) (*ignores, []Problem) {
	ig := &ignores{below: map[string][]pattern{}, folders: map[string]bool{}}
	var problems []Problem
	count := 0
	for _, f := range files {
		if path.Base(f.Path) != ignoreFile {
			continue
		}
		line := 0
		for text := range strings.Lines(string(f.Text)) {
			line++
			p, ok := parsePattern(strings.TrimRight(text, "\r\n"))
			if !ok {
				continue
			}
			if count++; count > mostPatterns {
				problems = append(problems, Problem{
					Place:   Place{f.Path, line},
					Message: "the ignore files hold more than 10,000 patterns, and what follows does not count: ignore folders instead of files",
				})
				return ig, problems
			}
			if !p.valid() {
				problems = append(problems, Problem{Place: Place{f.Path, line}, Message: "not a pattern: brackets must be closed, and a \\ be followed by something"})
				continue
			}
			dir := parent(f.Path)
			ig.below[dir] = append(ig.below[dir], p)
		}
	}
	return ig, problems
}

// parent is the folder of a path; "" is the root.
func parent(p string) string {
	dir, _ := path.Split(p)
	return strings.TrimSuffix(dir, "/")
}

func parsePattern(line string) (p pattern, ok bool) {
	// Spaces at the end count only behind a backslash.
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.again, line = true, line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.folderOnly, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	if !anchored {
		p.segments = append(p.segments, "**")
	}
	for s := range strings.SplitSeq(line, "/") {
		if s == "**" && len(p.segments) > 0 && p.segments[len(p.segments)-1] == "**" {
			continue
		}
		p.segments = append(p.segments, strings.ReplaceAll(s, "[!", "[^"))
	}
	return p, true
}

// valid says whether every segment can be matched.
func (p pattern) valid() bool {
	return !slices.ContainsFunc(p.segments, func(s string) bool {
		_, err := path.Match(s, "")
		return err != nil
	})
}

// matches says whether the pattern matches a path below its ignore file.
func (p pattern) matches(segments []string, folder bool) bool {
	if p.folderOnly && !folder {
		return false
	}
	// reach[j] says whether the pattern's first i segments can take the path's
	// first j.
	reach := make([]bool, len(segments)+1)
	reach[0] = true
	for i, s := range p.segments {
		next := make([]bool, len(segments)+1)
		for j := range reach {
			switch {
			case s == "**" && i == len(p.segments)-1 && i > 0:
				// At the end it wants something below.
				next[j] = j > 0 && (reach[j-1] || next[j-1])
			case s == "**":
				next[j] = reach[j] || j > 0 && next[j-1]
			case j > 0 && reach[j-1]:
				next[j], _ = path.Match(s, segments[j-1])
			}
		}
		reach = next
	}
	return reach[len(segments)]
}

// ignored says whether a file is not to be read. What lies in an ignored folder
// cannot be taken back.
func (ig *ignores) ignored(file string) bool {
	if len(ig.below) == 0 {
		return false
	}
	return ig.folderIgnored(parent(file)) || ig.match(file, false)
}

func (ig *ignores) folderIgnored(dir string) bool {
	if dir == "" {
		return false
	}
	if known, ok := ig.folders[dir]; ok {
		return known
	}
	is := ig.folderIgnored(parent(dir)) || ig.match(dir, true)
	ig.folders[dir] = is
	return is
}

// match asks the patterns of the folders above a path, the nearest first; in
// each, the last that matches decides.
func (ig *ignores) match(name string, folder bool) bool {
	segments := strings.Split(name, "/")
	for i := len(segments) - 1; i >= 0; i-- {
		patterns := ig.below[strings.Join(segments[:i], "/")]
		for _, p := range slices.Backward(patterns) {
			if p.matches(segments[i:], folder) {
				return !p.again
			}
		}
	}
	return false
}
