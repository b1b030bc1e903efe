package render

import (
	"reflect"
	"regexp/syntax"
	"strings"
)

// forecasts say, before a function runs, how large its result may be or how much
// work it is, where that is out of proportion to its arguments.
var forecasts = map[string]func(*meter, []reflect.Value){
	"repeat":  func(m *meter, a []reflect.Value) { m.expect(product(int(a[0].Int()), a[1].Len())) },
	"indent":  indentation,
	"nindent": indentation,
	"replace": func(m *meter, a []reflect.Value) {
		m.expect(a[2].Len() + product(strings.Count(a[2].String(), a[0].String()), a[1].Len()))
	},
	"join": func(m *meter, a []reflect.Value) { m.expect(product(a[0].Len(), length(a[1]))) },
	"wrapWith": func(m *meter, a []reflect.Value) {
		m.expect(product(a[1].Len(), 2+2*a[2].Len()/max(int(a[0].Int()), 1)))
	},
	"split":     func(m *meter, a []reflect.Value) { m.pieces(strings.Count(a[1].String(), a[0].String())) },
	"splitList": func(m *meter, a []reflect.Value) { m.pieces(strings.Count(a[1].String(), a[0].String())) },
	"splitn":    func(m *meter, a []reflect.Value) { m.pieces(strings.Count(a[2].String(), a[0].String())) },

	// These compare each item with each.
	"uniq":        quadratic,
	"mustUniq":    quadratic,
	"without":     quadratic,
	"mustWithout": quadratic,

	"printf": func(m *meter, a []reflect.Value) { m.expect(widths(a[0].String(), a[1])) },

	"regexMatch":                 search,
	"mustRegexMatch":             search,
	"regexFind":                  search,
	"mustRegexFind":              search,
	"regexFindAll":               searchAll,
	"mustRegexFindAll":           searchAll,
	"regexSplit":                 searchAll,
	"mustRegexSplit":             searchAll,
	"regexReplaceAll":            substitute,
	"mustRegexReplaceAll":        substitute,
	"regexReplaceAllLiteral":     substitute,
	"mustRegexReplaceAllLiteral": substitute,
}

func indentation(m *meter, a []reflect.Value) {
	m.expect(product(int(a[0].Int()), 1+strings.Count(a[1].String(), "\n")))
}

// pieces expects n cuts of a text.
func (m *meter) pieces(n int) { m.expect(product(4*costNode, n+1)) }

// length is that of a list in whatever wrapping; 1 for anything else.
func length(v reflect.Value) int {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return v.Len()
	}
	return 1
}

func quadratic(m *meter, a []reflect.Value) {
	before := m.work
	m.weigh(a[0])
	times := length(a[0])
	if len(a) > 1 { // without: the list with each of those left out
		times = length(a[1])
	}
	m.spend(product(m.work-before, times))
}

// widths sums up what a format asks for in widths and precisions, of which fmt
// takes up to a million each.
func widths(format string, args reflect.Value) int {
	sum, star := 0, 0
	for i := range args.Len() {
		v := args.Index(i)
		for v.Kind() == reflect.Interface && !v.IsNil() {
			v = v.Elem()
		}
		if v.CanInt() {
			star = max(star, int(v.Int()), -int(v.Int()))
		}
		if v.CanUint() {
			star = max(star, int(min(v.Uint(), 1<<31)))
		}
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for n := 0; i+1 < len(format) && strings.IndexByte("+-# 0123456789.*[]", format[i+1]) >= 0; i++ {
			switch c := format[i+1]; {
			case c >= '0' && c <= '9':
				n = min(10*n+int(c-'0'), 1<<31)
				sum = min(sum+n, 1<<31)
			case c == '*':
				sum = min(sum+star, 1<<31)
			default:
				n = 0
			}
		}
	}
	return sum
}

// mostProgram is how many instructions a regular expression may have.
const mostProgram = 10_000

// search spends what matching may cost: each instruction at each byte.
func search(m *meter, a []reflect.Value) {
	pattern := a[0].String()
	n := len(pattern)
	if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		n = instructions(re)
	}
	if n > mostProgram {
		panic(overLimit("a regular expression of more than %d instructions", mostProgram))
	}
	m.spend(product(n+1, a[1].Len()+1))
}

// instructions is about how many a regular expression is compiled to.
func instructions(re *syntax.Regexp) int {
	n := 2 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), 1<<31)
	}
	if re.Op == syntax.OpRepeat {
		n = product(n, 1+max(re.Min, re.Max))
	}
	return n
}

func searchAll(m *meter, a []reflect.Value) {
	search(m, a)
	m.pieces(a[1].Len())
}

// substitute expects a replacement at each byte, and the whole text for each of
// its variables.
func substitute(m *meter, a []reflect.Value) {
	search(m, a)
	text, replacement := a[1].Len(), a[2].String()
	m.expect(product(len(replacement), text+1) + product(strings.Count(replacement, "$"), text) + text)
}
