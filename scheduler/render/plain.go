package render

import "strings"

// plainYAML says whether a text is YAML of the plainest kind, without a key
// twice: maps and lists in block style, of scalars that need no second look. It
// spares most output the parser, which takes longer than everything else that is
// done for a file. False says nothing: the text is then parsed.
func plainYAML(text string) bool {
	s := plainScanner{open: true}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if !s.take(line) {
			return false
		}
	}
	return len(s.levels) > 0
}

// plainScanner goes through a document line by line.
type plainScanner struct {
	levels []plainLevel
	// open says that the last line may have a map or a list below it.
	open bool
	// literal is the column of the lines of a text that began with |, or 0; unless
	// -1, whose first line says it. above is the column of its key.
	literal, above int
}

// plainLevel is a map or a list, at a column.
type plainLevel struct {
	column int
	list   bool
	keys   []string
}

func (s *plainScanner) take(line string) bool {
	rest := strings.TrimLeft(line, " ")
	column := len(line) - len(rest)
	if !printable(rest) {
		return false
	}
	if s.literal != 0 {
		switch {
		case s.literal < 0 && rest != "" && column > s.above:
			s.literal = column
			return true
		case s.literal > 0 && (line == "" || column >= s.literal):
			return true
		case s.literal < 0 || column > s.above:
			return false
		}
		s.literal = 0
	}
	switch {
	case rest == "" || rest[0] == '#':
		return true
	case line == "---":
		*s = plainScanner{levels: s.levels[:0], open: true}
		return true
	}
	for strings.HasPrefix(rest, "- ") {
		if !s.place(column, true) {
			return false
		}
		s.open = true
		inner := strings.TrimLeft(rest[1:], " ")
		column += len(rest) - len(inner)
		rest = inner
	}
	key, value, ok := strings.Cut(rest, ":")
	if !ok || !plainKey(key) || value != "" && value[0] != ' ' {
		// An item of a list that is a scalar.
		ok = s.open && len(s.levels) > 0 && s.levels[len(s.levels)-1].list && line[column-1] == ' ' && plainScalar(rest)
		s.open = false
		return ok
	}
	if !s.place(column, false) {
		return false
	}
	level := &s.levels[len(s.levels)-1]
	for _, k := range level.keys {
		if k == key {
			return false
		}
	}
	if level.keys = append(level.keys, key); len(level.keys) > mostPlainKeys {
		return false
	}
	value = strings.TrimLeft(value, " ")
	s.open = value == ""
	if value == "|" {
		s.literal, s.above = -1, column
		return true
	}
	return value == "" || plainScalar(value)
}

// mostPlainKeys is how many keys a plain map has at most: they are compared each
// with each.
const mostPlainKeys = 100

// place finds the map or list at a column that a line continues, or begins one
// below the last line.
func (s *plainScanner) place(column int, list bool) bool {
	for n := len(s.levels); n > 0; n-- {
		top := &s.levels[n-1]
		switch {
		case top.column > column:
			s.levels, s.open = s.levels[:n-1], false
			continue
		case top.column == column && top.list == list:
			return true
		case top.column == column && top.list:
			// A list ends that is no deeper than the map above it.
			s.levels, s.open = s.levels[:n-1], false
			continue
		}
		break
	}
	if !s.open {
		return false
	}
	s.levels = append(s.levels, plainLevel{column: column, list: list})
	return true
}

// plainKey says whether a text is a key that can only be read as itself.
func plainKey(s string) bool {
	if s == "" || len(s) > 128 || !letterOrDigit(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !letterOrDigit(s[i]) && strings.IndexByte("_-./", s[i]) < 0 {
			return false
		}
	}
	return true
}

// plainScalar says whether a value is a scalar in one line.
func plainScalar(s string) bool {
	if s == "{}" || s == "[]" {
		return true
	}
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return strings.IndexByte(s[1:len(s)-1], s[0]) < 0 && strings.IndexByte(s, '\\') < 0
	}
	if s == "" || !letterOrDigit(s[0]) || s[len(s)-1] == ':' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !letterOrDigit(s[i]) && strings.IndexByte("_-./ @+,=~:;()", s[i]) < 0 || s[i] == ' ' && s[i-1] == ':' {
			return false
		}
	}
	return true
}

func letterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// printable says whether a text is of ASCII's printable characters only.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
