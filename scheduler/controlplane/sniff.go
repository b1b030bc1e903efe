package controlplane

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
)

// guess is what an unreadable document seems to be, from its lines alone.
type guess struct {
	apiVersion, kind, name string
	// labels are nil where the lines leave any doubt about them.
	labels map[string]string
	// platform says that the words platform-config stand somewhere in it.
	platform bool
}

// ours says whether the document may have been meant for the scheduler.
func (g guess) ours() bool {
	group, _, _ := strings.Cut(APIVersion, "/")
	return strings.HasPrefix(g.apiVersion, group+"/") || g.platformConfig()
}

// platformConfig says whether it may have been a container of configuration.
func (g guess) platformConfig() bool { return g.kind == kindConfigMap && g.platform }

var (
	topField  = regexp.MustCompile(`^(apiVersion|kind): *["']?([^"'#\s]+)`)
	metaField = regexp.MustCompile(`^( +)(name|labels): *(["']?([^"'#\s]*)["']?) *(#.*)?$`)
	oneLabel  = regexp.MustCompile(`^( +)["']?([A-Za-z0-9._/-]+)["']?: *["']?([A-Za-z0-9._-]*)["']? *(#.*)?$`)
)

// sniff looks at a text as if every line of it were written the usual way.
func sniff(text []byte) guess {
	g := guess{platform: bytes.Contains(text, []byte(labelPlatformConfig))}
	inMeta, doubt := false, false
	labelsAt := -1 // the indentation of the line "labels:", while among them
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(strings.TrimLeft(line, " "), "#") {
			continue
		}
		if line[0] != ' ' {
			inMeta, labelsAt = line == "metadata:", -1
			if m := topField.FindStringSubmatch(line); len(m) == 3 && m[1] == "kind" {
				g.kind = cmp.Or(g.kind, m[2])
			} else if len(m) == 3 {
				g.apiVersion = cmp.Or(g.apiVersion, m[2])
			}
			continue
		}
		if !inMeta {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if labelsAt >= 0 && indent > labelsAt {
			if m := oneLabel.FindStringSubmatch(line); m != nil {
				g.labels[m[2]] = m[3]
				continue
			}
			doubt = true
			continue
		}
		labelsAt = -1
		switch m := metaField.FindStringSubmatch(line); {
		case m == nil:
			// An annotation may be written in many ways; whatever else it is, the
			// labels cannot be trusted after it.
			doubt = doubt || !oneLabel.MatchString(line)
		case m[2] == "name" && g.name == "":
			g.name = m[4]
		case m[2] == "labels" && m[4] == "" && g.labels == nil:
			labelsAt, g.labels = indent, map[string]string{}
		case m[2] == "labels":
			doubt = true
		}
	}
	if doubt {
		g.labels = nil
	}
	return g
}
