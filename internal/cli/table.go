package cli

import (
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestCell is where the last column is cut, in characters, when the width of
// the terminal is not known. The whole text is in the JSON.
const longestCell = 160

// table is text in columns. The last column may be long: it is cut.
type table struct {
	header []string
	rows   [][]string
	// colour gives the column of that number, from 0, a colour by its text.
	colourColumn int
	colour       func(text string) colour
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write aligns the columns and writes them, at most width columns wide; a width
// of zero is unknown.
func (t *table) write(w io.Writer, st style, width int) error {
	rows := make([][]string, 0, len(t.rows)+1)
	rows = append(rows, t.header)
	for _, r := range t.rows {
		line := make([]string, len(r))
		for i, c := range r {
			line[i] = printable(c)
			if line[i] == "" {
				line[i] = "-"
			}
		}
		rows = append(rows, line)
	}
	last := len(t.header) - 1
	widths := make([]int, last)
	used := 0
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
		used += widths[i] + 2
	}
	room := longestCell
	if width > 0 {
		room = max(20, width-used-1)
	}
	var b strings.Builder
	for n, r := range rows {
		for i, c := range r {
			pad := ""
			if i < last {
				pad = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2)
			} else {
				c = cut(c, room)
			}
			if n > 0 && t.colour != nil && i == t.colourColumn {
				c = st.paint(t.colour(c), c)
			}
			b.WriteString(c + pad)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:max(0, n-1)]), " ") + "…"
}

// escapeSequence is a terminal's control sequence, as tools write for colours.
var escapeSequence = regexp.MustCompile("\x1b\\[[0-9;?]*[[:punct:][:alpha:]]")

// printable returns s on one line and without what could move a terminal's
// cursor or turn its text around: reasons and names come from clusters.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	s = escapeSequence.ReplaceAllString(s, "")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}
