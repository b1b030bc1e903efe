package chdb

import (
	"strings"
)

// statement is what has to be known about a text before it can be run.
type statement struct {
	// head is the text up to its data: all of it but for an INSERT.
	head string
	// insert says that data follows, in this format.
	insert bool
	format string
	// data is where the data starts in the text.
	data int
	// files says that the text reads or writes a file of this host by the
	// client-side clauses FROM INFILE and INTO OUTFILE.
	files bool
}

// parseStatement finds out whether a text is an INSERT that carries data, where
// the data starts and in which format it is. It reads ClickHouse's lexical
// rules and nothing deeper; whatever it does not understand is left to the
// engine.
func parseStatement(text string) statement {
	l := lexer{text: text}
	plain := statement{head: text}
	first := l.next()
	if !first.is("INSERT") {
		plain.files = l.findFiles(first)
		return plain
	}
	into := l.next()
	if !into.is("INTO") {
		return plain
	}
	l.skipTarget()
	depth, previous := 0, token{}
	for {
		t := l.next()
		switch {
		case t.kind == tokenEnd:
			return plain
		case t.kind == tokenOpen:
			depth++
		case t.kind == tokenClose:
			depth--
		case depth != 0:
		case t.is("SELECT"), t.is("WITH"):
			plain.files = l.findFiles(t)
			return plain
		case previous.is("FROM") && t.is("INFILE"):
			plain.files = true
			return plain
		case t.is("VALUES"):
			return statement{head: strings.TrimSpace(text[:t.start]), insert: true, format: "Values", data: t.end}
		case t.is("FORMAT"):
			name := l.next()
			if name.kind != tokenWord {
				return plain
			}
			return statement{
				head: strings.TrimSpace(text[:t.start]), insert: true,
				format: name.text, data: skipLineEnd(text, name.end),
			}
		}
		previous = t
	}
}

// skipLineEnd passes the blanks after the format's name and one line end, as
// ClickHouse does; what follows is data, byte for byte.
func skipLineEnd(text string, at int) int {
	for at < len(text) && strings.IndexByte(" \t\f", text[at]) >= 0 {
		at++
	}
	if at < len(text) && text[at] == ';' {
		at++
	}
	if at < len(text) && text[at] == '\r' {
		at++
	}
	if at < len(text) && text[at] == '\n' {
		at++
	}
	return at
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	// tokenName is a quoted identifier, tokenText a string, tokenOther anything
	// that has no meaning here.
	tokenName
	tokenText
	tokenOpen
	tokenClose
	tokenDot
	tokenOther
)

type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is tells whether the token is this keyword, in any case.
func (t token) is(keyword string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, keyword)
}

// lexer cuts a text into tokens, without comments and blanks. It never fails:
// an unclosed quote or comment runs to the end of the text.
type lexer struct {
	text string
	at   int
}

// skipTarget passes the table or table function after INSERT INTO.
func (l *lexer) skipTarget() {
	mark := l.at
	if t := l.next(); t.is("TABLE") || t.is("FUNCTION") {
		mark = l.at
		// INSERT INTO TABLE FUNCTION f(…)
		if t.is("TABLE") {
			if l.next().is("FUNCTION") {
				mark = l.at
			}
		}
	}
	l.at = mark
	l.next()
	for {
		mark = l.at
		if l.next().kind != tokenDot {
			l.at = mark
			return
		}
		l.next()
	}
}

// findFiles tells whether INTO OUTFILE or FROM INFILE follows anywhere.
func (l *lexer) findFiles(previous token) bool {
	for {
		t := l.next()
		if t.kind == tokenEnd {
			return false
		}
		if previous.is("INTO") && t.is("OUTFILE") || previous.is("FROM") && t.is("INFILE") {
			return true
		}
		previous = t
	}
}

func (l *lexer) next() token {
	l.skipBlanks()
	start := l.at
	if start >= len(l.text) {
		return token{kind: tokenEnd, start: start, end: start}
	}
	kind := tokenOther
	switch c := l.text[start]; {
	case isWordByte(c):
		for l.at < len(l.text) && isWordByte(l.text[l.at]) {
			l.at++
		}
		kind = tokenWord
	case c == '\'':
		l.skipQuoted(c)
		kind = tokenText
	case c == '`' || c == '"':
		l.skipQuoted(c)
		kind = tokenName
	case c == '$':
		l.skipHeredoc()
		kind = tokenText
	default:
		l.at++
		switch c {
		case '(', '[', '{':
			kind = tokenOpen
		case ')', ']', '}':
			kind = tokenClose
		case '.':
			kind = tokenDot
		}
	}
	return token{kind: kind, text: l.text[start:l.at], start: start, end: l.at}
}

func (l *lexer) skipBlanks() {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v\x00", rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "#!"), strings.HasPrefix(rest, "# "):
			l.skipPast("\n")
		case strings.HasPrefix(rest, "/*"):
			l.at += 2
			l.skipPast("*/")
		case strings.HasPrefix(rest, "\ufeff"):
			l.at += len("\ufeff")
		default:
			return
		}
	}
}

func (l *lexer) skipPast(end string) {
	i := strings.Index(l.text[l.at:], end)
	if i < 0 {
		l.at = len(l.text)
		return
	}
	l.at += i + len(end)
}

// skipQuoted passes a quoted piece; the quote is escaped by a backslash or by
// doubling it.
func (l *lexer) skipQuoted(quote byte) {
	l.at++
	for l.at < len(l.text) {
		switch l.text[l.at] {
		case '\\':
			l.at = min(l.at+2, len(l.text))
		case quote:
			l.at++
			if l.at >= len(l.text) || l.text[l.at] != quote {
				return
			}
			l.at++
		default:
			l.at++
		}
	}
}

// skipHeredoc passes $tag$ … $tag$; a lone dollar is one byte.
func (l *lexer) skipHeredoc() {
	end := l.at + 1
	for end < len(l.text) && isWordByte(l.text[end]) {
		end++
	}
	if end >= len(l.text) || l.text[end] != '$' {
		l.at++
		return
	}
	tag := l.text[l.at : end+1]
	l.at = end + 1
	l.skipPast(tag)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isName tells whether a text can stand in SQL as a name without quotes.
func isName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return true
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "`", "\\`", "\x00", `\0`)

// quoteText writes a string literal, quoteName an identifier.
func quoteText(s string) string { return "'" + quoteEscaper.Replace(s) + "'" }
func quoteName(s string) string { return "`" + quoteEscaper.Replace(s) + "`" }
