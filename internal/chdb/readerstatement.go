package chdb

import (
	"slices"
	"strings"
)

// readerFormats are the output formats that need no file beside them, such as
// a schema or a template.
var readerFormats = formatSet(`Arrow ArrowStream CSV CSVWithNames CSVWithNamesAndTypes JSON JSONColumns JSONColumnsWithMetadata
	JSONCompact JSONCompactColumns JSONCompactEachRow JSONCompactEachRowWithNames JSONCompactEachRowWithNamesAndTypes
	JSONCompactStrings JSONEachRow JSONL JSONLines JSONObjectEachRow JSONStrings JSONStringsEachRow Markdown MsgPack NDJSON
	Native Null Parquet Pretty PrettyCompact PrettyCompactMonoBlock PrettyCompactNoEscapes PrettyMonoBlock PrettyNoEscapes
	PrettySpace RawBLOB RowBinary RowBinaryWithNames RowBinaryWithNamesAndTypes TSKV TSV TSVRaw TSVWithNames
	TSVWithNamesAndTypes TabSeparated TabSeparatedRaw TabSeparatedWithNames TabSeparatedWithNamesAndTypes Values Vertical XML`)

func formatSet(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[strings.ToLower(name)] = true
	}
	return set
}

// readerStatement is one statement as ClickHouse itself writes it: without
// comments, and known to be one.
type readerStatement struct {
	// text has no FORMAT clause.
	text string
	// format is what the clause said, or empty.
	format string
	tokens []token
}

// newReaderStatement takes what formatQuery returned.
func newReaderStatement(canonical string) (readerStatement, error) {
	s := readerStatement{text: strings.TrimSpace(canonical)}
	l := lexer{text: s.text}
	depth := 0
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		switch t.kind {
		case tokenOpen:
			depth++
		case tokenClose:
			depth--
		}
		if depth < 0 || t.text == ";" {
			return s, refusal("the statement is not understood")
		}
		s.tokens = append(s.tokens, t)
	}
	if depth != 0 || len(s.tokens) == 0 {
		return s, refusal("the statement is not understood")
	}
	if err := s.plainNames(); err != nil {
		return s, err
	}
	for i := range len(s.tokens) - 2 {
		if s.tokens[i].is("FORMAT") && s.tokens[i+1].kind == tokenWord && s.tokens[i+2].is("SETTINGS") {
			return s, refusal("SETTINGS cannot be given here")
		}
	}
	s.cutFormat()
	if len(s.tokens) == 0 {
		return s, refusal("the statement is not understood")
	}
	if s.format != "" && !readerFormats[strings.ToLower(s.format)] {
		return s, refusal("the format %s cannot be used here", cut(s.format))
	}
	return s, nil
}

// cutFormat takes FORMAT off the end. Nothing else ends in two words the first
// of which is FORMAT: an alias is always written with AS.
func (s *readerStatement) cutFormat() {
	n := len(s.tokens)
	if n < 2 || !s.tokens[n-2].is("FORMAT") || s.tokens[n-1].kind != tokenWord && s.tokens[n-1].kind != tokenName {
		return
	}
	// One that is a keyword as well comes quoted: FORMAT `Null`.
	s.format = strings.Trim(s.tokens[n-1].text, "`")
	s.text = strings.TrimSpace(s.text[:s.tokens[n-2].start])
	s.tokens = s.tokens[:n-2]
}

// plainNames refuses quoted names with anything in them that would need an
// escape, a line's end above all, and names that come from parameters: the
// query tree is read line by line.
func (s *readerStatement) plainNames() error {
	for i, t := range s.tokens {
		if t.kind == tokenName && strings.ContainsFunc(t.text, func(c rune) bool { return c < ' ' || c == '\\' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029 }) {
			return refusal("names with control characters or backslashes cannot be used here")
		}
		if t.text == "{" && i+3 < len(s.tokens) && slices.ContainsFunc(s.tokens[i+1:min(i+5, len(s.tokens))], func(t token) bool { return t.is("Identifier") }) {
			return refusal("parameters of the type Identifier cannot be used here")
		}
	}
	return nil
}

// isSelect tells whether the statement begins like a SELECT. Whether it is one
// shows when it is put in brackets and parsed as a subquery.
func (s *readerStatement) isSelect() bool {
	first := s.tokens[0]
	return first.is("SELECT") || first.is("WITH") || first.kind == tokenOpen
}

// checkShow checks the statements other than SELECT against their whole
// grammar, as ClickHouse writes them.
func (s *readerStatement) checkShow(r treeRules) error {
	m := &matcher{tokens: s.tokens, rules: r}
	switch {
	case m.words("SHOW", "DATABASES"):
		m.like()
	case m.words("SHOW", "TABLES"):
		if m.words("FROM") {
			m.databaseName()
		}
		m.like()
	case m.words("SHOW", "COLUMNS"), m.words("SHOW", "FULL", "COLUMNS"), m.words("SHOW", "EXTENDED", "FULL", "COLUMNS"):
		m.words("FROM")
		m.tableName()
		if m.words("FROM") {
			m.databaseName()
		}
		m.like()
	case m.words("SHOW", "CREATE", "TABLE"), m.words("SHOW", "CREATE", "VIEW"), m.words("DESCRIBE", "TABLE"),
		m.words("EXISTS", "TABLE"), m.words("EXISTS", "VIEW"):
		m.tableName()
	default:
		return refusal("only SELECT, SHOW DATABASES, SHOW TABLES, SHOW COLUMNS, SHOW CREATE TABLE, DESCRIBE TABLE and EXISTS TABLE can be run here")
	}
	if m.err != nil {
		return m.err
	}
	if len(m.tokens) != 0 {
		return refusal("%q is not understood", cut(s.text[m.tokens[0].start:]))
	}
	return nil
}

// matcher reads tokens from the front.
type matcher struct {
	tokens []token
	rules  treeRules
	err    error
}

// words takes these words, or nothing.
func (m *matcher) words(words ...string) bool {
	if len(m.tokens) < len(words) {
		return false
	}
	for i, word := range words {
		if !m.tokens[i].is(word) {
			return false
		}
	}
	m.tokens = m.tokens[len(words):]
	return true
}

// like takes an optional LIKE with its pattern.
func (m *matcher) like() {
	if m.words("NOT", "LIKE") || m.words("NOT", "ILIKE") || m.words("LIKE") || m.words("ILIKE") {
		if len(m.tokens) == 0 || m.tokens[0].kind != tokenText {
			m.err = refusal("a pattern without quotes is not understood")
			return
		}
		m.tokens = m.tokens[1:]
	}
}

func (m *matcher) name() string {
	if len(m.tokens) == 0 || m.tokens[0].kind != tokenWord && m.tokens[0].kind != tokenName {
		return ""
	}
	t := m.tokens[0]
	m.tokens = m.tokens[1:]
	return strings.Trim(t.text, "`\"")
}

func (m *matcher) databaseName() {
	if name := m.name(); name != m.rules.database {
		m.err = refusal("the database %s cannot be read here", cut(name))
	}
}

func (m *matcher) tableName() {
	name := m.name()
	if len(m.tokens) > 0 && m.tokens[0].kind == tokenDot {
		m.tokens = m.tokens[1:]
		name += "." + m.name()
	} else {
		name = m.rules.database + "." + name
	}
	if !m.rules.readable(name) && !readerSystemTables[name] {
		m.err = refusal("the table %s cannot be read here; SHOW TABLES lists what can", cut(name))
	}
}
