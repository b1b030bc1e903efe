package compose

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// The values of a ConfigMap are strings, whatever they are meant to be. So a
// string that looks like a number is shown to a schema as a number, and one
// that says true or false as a string; where the schema asks for a value of the
// other kind, it is shown that.

// reading is a value that can be read in two ways.
type reading struct {
	set    func(v any)
	as     [2]any
	second bool
}

// readings are the values of a configuration that can be read in two ways, by
// the names that lead to them.
type readings map[string]*reading

// location is where a value stands, as a map's key.
func location(names []string) string { return strings.Join(names, "\x00") }

// typed copies values for a schema, with the first reading of each string.
func typed(v any, names []string, origins map[string]Origin, set func(any), all readings) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, sub := range v {
			m[k] = typed(sub, append(names, k), origins, func(v any) { m[k] = v }, all)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, sub := range v {
			l[i] = typed(sub, append(names, strconv.Itoa(i)), origins, func(v any) { l[i] = v }, all)
		}
		return l
	case string:
		first, second, two := twoReadings(v)
		if !two || origins[Key(names...)].Literal {
			return v
		}
		all[location(names)] = &reading{set: set, as: [2]any{first, second}}
		return first
	}
	return v
}

var looksNumeric = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`)

// twoReadings returns the two ways to read a string, the likelier first.
func twoReadings(s string) (first, second any, two bool) {
	const longest = 64
	switch {
	case s == "true" || s == "false":
		return s, s == "true", true
	case len(s) > longest || !looksNumeric.MatchString(s):
		return nil, nil, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, s, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, nil, false
	}
	return f, s, true
}

// check applies a schema to a configuration.
func (c compiled) check(config *Config) ([]fault, error) {
	all := readings{}
	values, _ := typed(config.Data, nil, config.Origins, nil, all).(map[string]any)
	found, err := c.validate(values)
	// One round is enough for all but schemas that look further when the first
	// objection is gone.
	const rounds = 3
	for range rounds {
		if err != nil || found == nil || !all.turn(found) {
			break
		}
		found, err = c.validate(values)
	}
	if err != nil || found == nil {
		return nil, err
	}
	return faults(found), nil
}

// turn shows the second reading of every value where an objection asks for it,
// in any of the forms that the schema allows.
func (all readings) turn(e *jsonschema.ValidationError) (turned bool) {
	for _, c := range e.Causes {
		if all.turn(c) {
			turned = true
		}
	}
	r := all[location(e.InstanceLocation)]
	if r == nil || r.second || !asksFor(e.ErrorKind, r.as[1]) {
		return turned
	}
	r.second = true
	r.set(r.as[1])
	return true
}

// asksFor says whether an objection is that a value is not of the kind of
// another.
func asksFor(k jsonschema.ErrorKind, other any) bool {
	name := "boolean"
	if _, ok := other.(string); ok {
		name = "string"
	}
	alike := func(v any) bool { return reflect.TypeOf(v) == reflect.TypeOf(other) }
	switch k := k.(type) {
	case *kind.Type:
		return slices.Contains(k.Want, name)
	case *kind.Enum:
		return slices.ContainsFunc(k.Want, alike)
	case *kind.Const:
		return alike(k.Want)
	}
	return false
}
