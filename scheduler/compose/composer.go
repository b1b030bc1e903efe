package compose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// azurePrefix begins the names of ConfigMaps whose keys carry labels.
const azurePrefix = "azure-app-config"

// Composer composes the configurations of assignments from one set of
// ConfigMaps, and remembers the combinations it has seen.
type Composer struct {
	conditions *conditions
	sources    []source
	seen       map[string]composed
}

type composed struct {
	config   Config
	problems []controlplane.Problem
}

// source is a ConfigMap taken apart.
type source struct {
	*controlplane.ConfigMap
	need    *big.Int
	entries []entry
	// broken says why nothing may be composed where the ConfigMap applies.
	broken string
}

// entry is one value of a ConfigMap.
type entry struct {
	source *controlplane.ConfigMap
	place  controlplane.Place
	key    string
	value  any
	// literal values were written in single quotes.
	literal bool
	// need is what the labels in an entry's key ask for; nil for all else.
	need *big.Int
	// order counts all entries in the order in which they are merged.
	order int
}

// NewComposer takes ConfigMaps apart. It keeps pointing to them, so they must
// not change any more. Keys of azure-app-config ConfigMaps that cannot be read
// are problems, and so is every assignment to which such a ConfigMap applies.
func NewComposer(configMaps []controlplane.ConfigMap) (*Composer, []controlplane.Problem) {
	c := &Composer{conditions: newConditions(), seen: map[string]composed{}}
	var problems []controlplane.Problem
	order := 0
	sorted := make([]*controlplane.ConfigMap, len(configMaps))
	for i := range configMaps {
		sorted[i] = &configMaps[i]
	}
	slices.SortStableFunc(sorted, func(a, b *controlplane.ConfigMap) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Compare(b.Place))
	})
	for _, m := range sorted {
		s := source{ConfigMap: m, need: c.conditions.need(m.Labels), broken: m.Broken}
		for _, e := range entriesOf(m) {
			if strings.HasPrefix(m.Name, azurePrefix) {
				labels, key, ok := azureKey(e.key)
				if !ok {
					p := controlplane.Problem{
						Place: e.place, Kind: "ConfigMap", Name: m.Name,
						Message: fmt.Sprintf("key %q must be label1.value1.label2.value2.KEY, with any number of labels: correct it", e.key),
					}
					problems = append(problems, p)
					s.broken = cmp.Or(s.broken, p.String()+": "+p.Message)
					continue
				}
				e.key, e.need = key, c.conditions.need(labels)
			}
			e.order = order
			order++
			s.entries = append(s.entries, e)
		}
		c.sources = append(c.sources, s)
	}
	return c, controlplane.SortProblems(problems)
}

// entriesOf returns the values of a ConfigMap in the order in which they are
// merged: by key, and the shorter first where keys carry labels.
func entriesOf(m *controlplane.ConfigMap) []entry {
	entries := make([]entry, 0, len(m.Data))
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		e := entry{source: m, place: m.Place, key: key}
		if line := m.Lines[key]; line > 0 {
			e.place.Line = line
		}
		e.value, e.literal = valueOf(m.Data[key])
		entries = append(entries, e)
	}
	if strings.HasPrefix(m.Name, azurePrefix) {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(len(a.key), len(b.key)) })
	}
	return entries
}

// valueOf reads a value: a YAML map or list, or text. Single quotes around it,
// as YAML has them, say that it is text, and are not part of it.
func valueOf(text string) (v any, literal bool) {
	if t := strings.TrimSpace(text); len(t) >= 2 && t[0] == '\'' && t[len(t)-1] == '\'' {
		if t = t[1 : len(t)-1]; !strings.Contains(strings.ReplaceAll(t, "''", ""), "'") {
			return strings.ReplaceAll(t, "''", "'"), true
		}
	}
	if v, ok := controlplane.Structured(text); ok {
		return v, false
	}
	return text, false
}

// azureKey takes label1.value1.label2.value2.KEY apart.
func azureKey(s string) (labels map[string]string, key string, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts)%2 == 0 || slices.Contains(parts, "") {
		return nil, "", false
	}
	labels = make(map[string]string, len(parts)/2)
	for i := 0; i+1 < len(parts); i += 2 {
		if v, twice := labels[parts[i]]; twice && v != parts[i+1] {
			return nil, "", false
		}
		labels[parts[i]] = parts[i+1]
	}
	return labels, parts[len(parts)-1], true
}

// Compose returns the configuration of an assignment. Any problem means that it
// must not be used: a broken ConfigMap applies to the assignment.
func (c *Composer) Compose(a *match.Assignment) (Config, []controlplane.Problem) {
	hold := c.conditions.hold(a)
	key := string(hold.Bytes())
	done, ok := c.seen[key]
	if !ok {
		done = c.compose(hold)
		c.seen[key] = done
	}
	return done.config, done.problems
}

// compose merges whatever applies where these conditions hold.
func (c *Composer) compose(hold *big.Int) composed {
	root := &node{kind: isMap, fields: map[string]*node{}}
	var done composed
	for i := range c.sources {
		s := &c.sources[i]
		if !within(s.need, hold) {
			continue
		}
		if s.broken != "" {
			done.problems = append(done.problems, controlplane.Problem{
				Place: s.Place, Kind: "ConfigMap", Name: s.Name,
				Message: "nothing is composed with or without it until it is mended: " + s.broken,
			})
			continue
		}
		used := len(s.entries) == 0
		for j := range s.entries {
			e := &s.entries[j]
			if e.need != nil && !within(e.need, hold) {
				continue
			}
			used = true
			later := newNode(e.value, e)
			if old, ok := root.fields[e.key]; ok {
				later = merge(old, later, s.Merge)
			}
			root.fields[e.key] = later
		}
		if used {
			done.config.Inputs = append(done.config.Inputs, s.Name)
		}
	}
	done.config.Data, _ = root.value().(map[string]any)
	done.config.Origins = make(map[string]Origin, len(root.fields))
	for k, n := range root.fields {
		n.each([]string{k}, func(names []string, leaf *node) { done.config.Origins[Key(names...)] = leaf.origin() })
	}
	done.config.Digest = digest(&done.config)
	return done
}

// digest hashes the values of a configuration, and which of them are literal.
func digest(c *Config) string {
	literal := []string{}
	for key, o := range c.Origins {
		if o.Literal {
			literal = append(literal, key)
		}
	}
	slices.Sort(literal)
	text, err := json.Marshal([]any{c.Data, literal})
	if err != nil {
		// Values come from YAML without infinite numbers: nothing else can fail.
		panic(fmt.Sprintf("compose: values that are not JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
