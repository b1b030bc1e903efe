package object

import (
	"strings"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

// Message returns a text fit to be sent: valid UTF-8, no user info in the URLs
// it holds, at most schema.MaxMessage bytes, cut at the border of a character.
func Message(s string) string {
	s = stripURLs(strings.TrimSpace(strings.ToValidUTF8(s, string(utf8.RuneError))))
	if len(s) <= schema.MaxMessage {
		return s
	}
	n := schema.MaxMessage
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// stripURLs cuts the user info out of every URL in a text. User info ends at
// the last `@` before the first slash. Where what stands there is no host and
// port, the password itself may hold a slash: then the last `@` of the whole
// word counts.
func stripURLs(s string) string {
	const mark = "://"
	var b strings.Builder
	for {
		i := strings.Index(s, mark)
		if i < 0 {
			break
		}
		i += len(mark)
		b.WriteString(s[:i])
		s = s[i:]
		word := s[:endOf(s, " \t\r\n'\"`<>|")]
		authority := word[:endOf(word, "/?#")]
		cut := strings.LastIndexByte(authority, '@') + 1
		if cut == 0 && !hostAndPort(authority) {
			cut = strings.LastIndexByte(word, '@') + 1
		}
		s = s[cut:]
	}
	b.WriteString(s)
	return b.String()
}

// endOf returns where the first of the stops stands in s, or its length.
func endOf(s, stops string) int {
	if i := strings.IndexAny(s, stops); i >= 0 {
		return i
	}
	return len(s)
}

// hostAndPort reports whether s is a host, or a host and a number.
func hostAndPort(s string) bool {
	_, port, ok := strings.Cut(s[strings.LastIndexByte(s, ']')+1:], ":")
	return !ok || strings.Trim(port, "0123456789") == ""
}
