package render

import (
	"fmt"
	"reflect"
)

// engine runs templates: it has their functions, bound to one meter.
type engine struct {
	meter meter
	// funcs are those that were asked for, each made once.
	funcs map[string]any
	// config is the configuration of the execution at hand.
	config uintptr
	// texts are configurations as texts: neighbours mostly have the same.
	texts    [16]configText
	nextText int
}

// configText is what a function made of a configuration, which it keeps: as long
// as it does, no other map has its address.
type configText struct {
	function string
	config   map[string]any
	results  []reflect.Value
}

// texting functions make a text of a value, and are called with a whole
// configuration more than with anything else.
var texting = map[string]bool{"toYaml": true, "stringify": true, "toJson": true, "toPrettyJson": true, "hash": true}

// begin prepares for one execution.
func (e *engine) begin(config map[string]any, limits Limits) {
	e.meter.start(limits)
	e.config = reflect.ValueOf(config).Pointer()
}

// remembered calls a texting function, or returns what it returned before for
// the same configuration. Configurations never change; what a template changes
// is a copy, with an address of its own.
func (e *engine) remembered(name string, call func([]reflect.Value) []reflect.Value, args []reflect.Value) []reflect.Value {
	config, ok := args[0].Interface().(map[string]any)
	if !ok || len(config) == 0 || args[0].Elem().Pointer() != e.config {
		return call(args)
	}
	for i := range e.texts {
		if t := &e.texts[i]; t.function == name && reflect.ValueOf(t.config).Pointer() == e.config {
			return t.results
		}
	}
	results := call(args)
	e.texts[e.nextText] = configText{name, config, results}
	e.nextText = (e.nextText + 1) % len(e.texts)
	return results
}

// Names of what instrument puts into templates. No template can write them: it
// is parsed before they are there.
const (
	fnStep  = "landfallStep"
	fnEnter = "landfallEnter"
	fnLeave = "landfallLeave"
	fnUse   = "landfallUse"
	fnRange = "landfallRange"
	fnPrint = "landfallPrint"
)

func newEngine() *engine {
	e := &engine{funcs: map[string]any{}}
	m := &e.meter
	e.funcs[fnStep] = func(nodes int) string {
		m.spend(product(costNode, nodes))
		return ""
	}
	e.funcs[fnEnter] = func(nodes int) string {
		if m.calls++; m.calls > mostCalls {
			panic(overLimit("templates call each other more than %d deep", mostCalls))
		}
		m.spend(product(costNode, nodes))
		return ""
	}
	e.funcs[fnLeave] = func() string {
		m.calls--
		return ""
	}
	e.funcs[fnUse] = func(v any) any {
		m.weigh(reflect.ValueOf(v))
		return v
	}
	e.funcs[fnRange] = func(v any) any {
		all := reflect.ValueOf(v)
		m.weigh(all)
		if all.Kind() == reflect.Map {
			m.spend(product(costSort, all.Len()))
		}
		return v
	}
	e.funcs[fnPrint] = func(what string, v any) any {
		if v == nil {
			panic(noValue(what))
		}
		m.weigh(reflect.ValueOf(v))
		return v
	}
	return e
}

// noValue is the error of a pipeline whose value is to be printed and is not
// there.
type noValue string

func (what noValue) Error() string {
	return fmt.Sprintf("{{%s}} has no value: give it one where it should come from, or test for it with if or default", string(what))
}

// function returns a function by name, metered.
func (e *engine) function(name string) any {
	if f, ok := e.funcs[name]; ok {
		return f
	}
	f := e.metered(name, library[name])
	e.funcs[name] = f
	return f
}

// metered wraps a function: what it is given is weighed, then what it makes of
// it. Types stay the same, so that text/template converts the same arguments.
func (e *engine) metered(name string, fn reflect.Value) any {
	t := fn.Type()
	ahead, weigh := forecasts[name], e.meter.weigh
	if shallow[name] {
		weigh = e.meter.touch
	}
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		e.meter.spend(costCall)
		for i, a := range args {
			if t.IsVariadic() && i == len(args)-1 && a.Len() > mostArguments {
				panic(overLimit("a call of %s with more than %d arguments", name, mostArguments))
			}
			weigh(a)
		}
		if ahead != nil {
			ahead(&e.meter, args)
		}
		call := fn.Call
		if t.IsVariadic() {
			call = fn.CallSlice
		}
		if merging[name] {
			sources := args[1].Interface().([]map[string]any)
			for i, source := range sources {
				sources[i] = cloneMap(source)
			}
		}
		var results []reflect.Value
		if texting[name] {
			results = e.remembered(name, call, args)
		} else {
			results = call(args)
		}
		weigh(results[0])
		return results
	}).Interface()
}

// shallow functions never look into what is in their arguments, whose size is
// so no work.
var shallow = map[string]bool{
	"set": true, "unset": true, "get": true, "hasKey": true, "list": true, "tuple": true, "default": true, "empty": true,
	"coalesce": true, "all": true, "any": true, "ternary": true, "kindOf": true, "kindIs": true, "typeOf": true, "typeIs": true,
	"first": true, "mustFirst": true, "last": true, "mustLast": true, "rest": true, "mustRest": true, "initial": true,
	"mustInitial": true, "append": true, "mustAppend": true, "push": true, "mustPush": true, "prepend": true, "mustPrepend": true,
	"reverse": true, "mustReverse": true, "concat": true,
}

// mutating functions write into their first argument.
var mutating = map[string]bool{
	"set": true, "unset": true, "merge": true, "mustMerge": true, "mergeOverwrite": true, "mustMergeOverwrite": true,
}

// merging functions walk through their first argument while they write into it:
// it must have no part in common with the others.
var merging = map[string]bool{"merge": true, "mustMerge": true, "mergeOverwrite": true, "mustMergeOverwrite": true}

// clone copies maps and lists at every depth.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return cloneMap(v)
	case []any:
		return cloneList(v)
	case [][]any:
		c := make([][]any, len(v))
		for i, list := range v {
			c[i] = cloneList(list)
		}
		return c
	}
	return v
}

func cloneMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	c := make(map[string]any, len(m))
	for key, value := range m {
		c[key] = clone(value)
	}
	return c
}

func cloneList(l []any) []any {
	c := make([]any, len(l))
	for i, item := range l {
		c[i] = clone(item)
	}
	return c
}
