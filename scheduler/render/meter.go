package render

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrLimit is wrapped by errors of templates that wanted to do more, or write
// more, than they may.
var ErrLimit = errors.New("over its limit")

// limitError is what panics in a function that goes over a limit.
type limitError string

func (e limitError) Error() string   { return string(e) }
func (e limitError) Is(t error) bool { return t == ErrLimit }

func overLimit(format string, args ...any) error {
	return limitError(ErrLimit.Error() + ": " + fmt.Sprintf(format, args...))
}

// Limits bound what one execution of a template (all manifests of it, for one
// assignment) may do. A zero field stands for its default.
type Limits struct {
	// Output is the size of the file, in bytes; 1 MiB unless set.
	Output int
	// Work is how much a template may do, in bytes handled, or what costs as much:
	// a step of a loop's body counts 16. It is 16 Mi unless set, about a second of
	// a slow machine. A usual template takes a few thousand.
	Work int
}

const (
	defaultOutput = 1 << 20
	defaultWork   = 16 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Output <= 0 {
		l.Output = defaultOutput
	}
	if l.Work <= 0 {
		l.Work = defaultWork
	}
	return l
}

// Costs, in bytes that take as long.
const (
	costNode  = 16 // a node of a template, or of a value
	costCall  = 64
	costParse = 16  // a byte of a template
	costSort  = 100 // a key of a map, each time it is looped over
)

const (
	// mostDepth is how deep maps and lists may lie in each other. A value that
	// holds itself is deeper than anything.
	mostDepth = 64
	// mostCalls is how deep templates may call templates.
	mostCalls = 64
	// mostArguments is how many one call of a function may have.
	mostArguments = 1000
	// valueFactor is how much larger than the output a value may be.
	valueFactor = 4
)

// meter counts what an execution does. Its methods panic with an error that
// text/template returns as that of the function called.
type meter struct {
	limits Limits
	work   int
	calls  int
}

func (m *meter) start(l Limits) { *m = meter{limits: l.withDefaults()} }

// spend takes n from what is left of the work.
func (m *meter) spend(n int) {
	m.work += n
	if m.work > m.limits.Work || n < 0 {
		panic(overLimit("it does more than %d bytes' worth of work; look for a loop that is too long, "+
			"or for values that grow with each turn", m.limits.Work))
	}
}

// expect is asked before something of n bytes is made.
func (m *meter) expect(n int) {
	if most := valueFactor * m.limits.Output; n > most || n < 0 {
		panic(overLimit("a value of more than %d bytes", most))
	}
	m.spend(n)
}

// product multiplies what cannot be negative, and stops short of overflowing.
func product(a, b int) int {
	const most = 1 << 31
	a, b = min(max(a, 0), most), min(max(b, 0), most)
	return min(a*b, most)
}

// weigh spends what a value weighs.
func (m *meter) weigh(v reflect.Value) {
	left := valueFactor * m.limits.Output
	most := left
	if !weigh(v, &left, mostDepth) {
		panic(overLimit("a value that holds more than %d bytes, is nested more than %d deep or holds itself", most, mostDepth))
	}
	m.spend(most - left)
}

// touch spends what it takes to copy a value's first level.
func (m *meter) touch(v reflect.Value) {
	n := costNode
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		n += product(costNode, v.Len())
	}
	m.expect(n)
}

// weigh takes a value's weight, as it would be if no part of it were shared,
// from left. It returns false when that is not enough, or the value too deep.
func weigh(v reflect.Value, left *int, depth int) bool {
	*left -= costNode
	if *left < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
		return *left >= 0
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return true
		}
		if v.Kind() == reflect.Interface {
			*left += costNode // not a node of its own
		} else if depth--; depth < 0 {
			return false
		}
		return weigh(v.Elem(), left, depth)
	case reflect.Slice, reflect.Array:
		return weighList(v, left, depth-1)
	case reflect.Map:
		return weighMap(v, left, depth-1)
	case reflect.Struct:
		if depth--; depth < 0 {
			return false
		}
		for i := range v.NumField() {
			if !weigh(v.Field(i), left, depth) {
				return false
			}
		}
	default: // numbers and the like
	}
	return true
}

func weighList(v reflect.Value, left *int, depth int) bool {
	if depth < 0 {
		return false
	}
	if plain(v.Type().Elem().Kind()) {
		*left -= product(costNode, v.Len())
		return *left >= 0
	}
	for i := range v.Len() {
		if !weigh(v.Index(i), left, depth) {
			return false
		}
	}
	return true
}

func weighMap(v reflect.Value, left *int, depth int) bool {
	if depth < 0 {
		return false
	}
	// Most of what templates handle; reflection would take ten times as long.
	if v.CanInterface() {
		switch m := v.Interface().(type) {
		case map[string]any:
			for key, value := range m {
				*left -= len(key)
				if s, ok := value.(string); ok {
					*left -= costNode + len(s)
					continue
				}
				if *left < 0 || !weigh(reflect.ValueOf(value), left, depth) {
					return false
				}
			}
			return *left >= 0
		case map[string]string:
			for key, value := range m {
				*left -= costNode + len(key) + len(value)
			}
			return *left >= 0
		}
	}
	for entries := v.MapRange(); entries.Next(); {
		if !weigh(entries.Key(), left, depth) || !weigh(entries.Value(), left, depth) {
			return false
		}
	}
	return true
}

func plain(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128
}
