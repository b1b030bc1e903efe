package compose

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// Checker checks configurations against the schemas that apply, and remembers
// the combinations it has seen.
type Checker struct {
	conditions *conditions
	schemas    []labelled
	byName     map[string]int
	// own are the schemas that targets bring along, by text.
	own  map[string]compiled
	seen map[checked]result
}

// labelled is a ConfigSchema that is ready.
type labelled struct {
	*controlplane.ConfigSchema
	need *big.Int
	compiled
}

// checked is a configuration, by its digest, and a schema, by its text or by
// its place among the control plane's.
type checked struct {
	digest string
	number int
	text   string
}

type result struct {
	faults []fault
	err    error
}

// NewChecker compiles schemas. It keeps pointing to them, so they must not
// change any more. One that cannot be used is a problem, and a violation for
// every assignment to which it applies.
func NewChecker(schemas []controlplane.ConfigSchema) (*Checker, []controlplane.Problem) {
	k := &Checker{conditions: newConditions(), byName: map[string]int{}, own: map[string]compiled{}, seen: map[checked]result{}}
	var problems []controlplane.Problem
	for i := range schemas {
		s := &schemas[i]
		l := labelled{ConfigSchema: s, need: k.conditions.need(s.Labels)}
		if s.Broken != "" {
			l.err = fmt.Errorf("the ConfigSchema cannot be used: %s", s.Broken)
		} else if l.compiled = compile(s.Schema); l.err != nil {
			problems = append(problems, controlplane.Problem{Place: s.Place, Kind: "ConfigSchema", Name: s.Name, Message: l.err.Error()})
			l.err = fmt.Errorf("the ConfigSchema cannot be used: %w", l.err)
		}
		k.byName[s.Name] = i
		k.schemas = append(k.schemas, l)
	}
	return k, controlplane.SortProblems(problems)
}

// applied is a schema that applies to an assignment.
type applied struct {
	compiled
	name  string
	place controlplane.Place
	id    checked
}

// applying returns the schemas that apply to an assignment: those of the
// control plane by their labels, then what the target names or brings along.
func (k *Checker) applying(a *match.Assignment) []applied {
	hold := k.conditions.hold(a)
	taken := map[int]bool{}
	var all []applied
	take := func(i int) {
		if s := k.schemas[i]; !taken[i] {
			taken[i] = true
			all = append(all, applied{s.compiled, s.Name, s.Place, checked{number: i}})
		}
	}
	for i := range k.schemas {
		if within(k.schemas[i].need, hold) {
			take(i)
		}
	}
	for n, text := range a.Target.Schemas {
		name := fmt.Sprintf("%s#%d", a.Target.Name, n+1)
		if plain := strings.TrimSpace(text); !strings.ContainsAny(plain, ":{\n") {
			i, ok := k.byName[plain]
			if !ok {
				err := fmt.Errorf("there is no ConfigSchema %q: correct the name, or add one", plain)
				all = append(all, applied{compiled{err: err}, name, a.Target.Place, checked{text: text}})
				continue
			}
			take(i)
			continue
		}
		c, ok := k.own[text]
		if !ok {
			c = compile(text)
			k.own[text] = c
		}
		all = append(all, applied{c, name, a.Target.Place, checked{number: -1, text: text}})
	}
	return all
}

// Validate checks a configuration against every schema that applies to its
// assignment. The violations are sorted by key, then schema.
func (k *Checker) Validate(a *match.Assignment, c *Config) []Violation {
	var all []Violation
	for _, s := range k.applying(a) {
		r := k.check(s, c)
		if r.err != nil {
			all = append(all, Violation{Assignment: a.Name(), Schema: s.name, Place: s.place, Message: r.err.Error()})
			continue
		}
		for _, f := range r.faults {
			v := Violation{Assignment: a.Name(), Key: Key(f.names...), Schema: s.name, Place: s.place, Message: f.message}
			if o, ok := c.blame(f); ok {
				v.ConfigMap, v.Place = o.ConfigMap, o.Place
			}
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}

// check applies one schema to a configuration, once for each that differs.
func (k *Checker) check(s applied, c *Config) result {
	if s.err != nil {
		return result{err: s.err}
	}
	id := s.id
	id.digest = c.Digest
	r, ok := k.seen[id]
	if !ok {
		r.faults, r.err = s.compiled.check(c)
		k.seen[id] = r
	}
	return r
}

// blame finds who gave the value that a fault is about. Of a map or a list it
// is whoever came last in it.
func (c *Config) blame(f fault) (Origin, bool) {
	key := Key(f.names...)
	if o, ok := c.Origins[key]; ok || f.missing {
		return o, ok
	}
	var last Origin
	found, best := false, ""
	for _, k := range slices.Sorted(maps.Keys(c.Origins)) {
		if len(f.names) > 0 && !strings.HasPrefix(k, key+".") {
			continue
		}
		if o := c.Origins[k]; !found || o.ConfigMap > best {
			last, best, found = o, o.ConfigMap, true
		}
	}
	return last, found
}

// Missing returns what the schemas that apply still want, and which of the
// ConfigMaps could give it, sorted by key, then schema.
func (k *Checker) Missing(a *match.Assignment, c *Config, all []controlplane.ConfigMap) []Missing {
	var missing []Missing
	for _, s := range k.applying(a) {
		for _, f := range k.check(s, c).faults {
			if f.missing {
				missing = append(missing, Missing{Key: Key(f.names...), Schema: s.name, Candidates: candidates(f.names, c, all)})
			}
		}
	}
	slices.SortFunc(missing, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Schema, b.Schema)) })
	return slices.CompactFunc(missing, func(a, b Missing) bool { return a.Key == b.Key && a.Schema == b.Schema })
}

// candidates names the ConfigMaps that hold a value; if none does, those that
// apply.
func candidates(names []string, c *Config, all []controlplane.ConfigMap) []string {
	var holders []string
	for i := range all {
		for _, e := range entriesOf(&all[i]) {
			key := e.key
			if strings.HasPrefix(all[i].Name, azurePrefix) {
				_, key, _ = azureKey(e.key)
			}
			if key == names[0] && holds(e.value, names[1:]) {
				holders = append(holders, all[i].Name)
				break
			}
		}
	}
	if holders == nil {
		holders = slices.Clone(c.Inputs)
	}
	slices.Sort(holders)
	return slices.Compact(holders)
}

// holds says whether a value has something below these names.
func holds(v any, names []string) bool {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		if v, ok = m[name]; !ok {
			return false
		}
	}
	return true
}
