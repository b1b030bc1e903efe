package compose

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// randomValue makes a value of a few names, so that they meet.
func randomValue(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(10); {
	case n < 3 && depth > 0:
		m := map[string]any{}
		for range rng.IntN(4) {
			m[[]string{"name", "a", "b", "c.d", ""}[rng.IntN(5)]] = randomValue(rng, depth-1)
		}
		return m
	case n < 6 && depth > 0:
		l := make([]any, rng.IntN(4))
		for i := range l {
			l[i] = randomValue(rng, depth-1)
		}
		return l
	case n < 8:
		return float64(rng.IntN(5))
	}
	return []any{"x", "y", "true", "'q'", nil, true}[rng.IntN(6)]
}

// randomMaps makes ConfigMaps, some of which apply to some assignments.
func randomMaps(rng *rand.Rand) []controlplane.ConfigMap {
	merges := []controlplane.Merge{controlplane.MergeDeep, controlplane.MergeDeep, controlplane.MergeReplace, controlplane.MergeAppend}
	var maps []controlplane.ConfigMap
	for i := range 2 + rng.IntN(6) {
		labels := map[string]string{}
		if rng.IntN(2) == 0 {
			labels["region"] = []string{"west", "east"}[rng.IntN(2)]
		}
		name, prefix := fmt.Sprintf("m%d", i), ""
		if rng.IntN(4) == 0 {
			name = fmt.Sprintf("azure-app-config-%d", i)
			prefix = []string{"", "region.west.", "cluster-type.large."}[rng.IntN(3)]
		}
		var data []string
		for range 1 + rng.IntN(4) {
			text, err := json.Marshal(randomValue(rng, 3))
			if err != nil {
				panic(err)
			}
			if s, err := strconv.Unquote(string(text)); err == nil {
				text = []byte(s)
			}
			data = append(data, prefix+[]string{"K", "L", "M"}[rng.IntN(3)], string(text))
		}
		maps = append(maps, merging(configMap(name, labels, data...), merges[rng.IntN(len(merges))]))
	}
	return maps
}

// leaves walks values on its own, apart from the code.
func leaves(v any, names []string, do func(names []string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			leaves(sub, append(slices.Clone(names), k), do)
		}
		if len(v) > 0 || len(names) == 0 {
			return
		}
	case []any:
		for i, sub := range v {
			leaves(sub, append(slices.Clone(names), strconv.Itoa(i)), do)
		}
		if len(v) > 0 {
			return
		}
	}
	do(names, v)
}

// gives says whether a ConfigMap holds such a leaf somewhere under a key.
func gives(m controlplane.ConfigMap, key string, want any) bool {
	found := false
	for k, text := range m.Data {
		if k != key && !strings.HasSuffix(k, "."+key) {
			continue
		}
		v, _ := valueOf(text)
		leaves(map[string]any{key: v}, nil, func(_ []string, v any) { found = found || cmp.Equal(v, want) })
	}
	return found
}

// Rule 4, as a property: every leaf has an origin and every origin a leaf, the
// ConfigMap that is named holds that very value, and whoever is overridden has
// something under that key. The order of the ConfigMaps does not matter, nor
// what was composed before.
func TestProvenanceAccountsForEveryKey(t *testing.T) {
	west, east := assignment("large", "app", map[string]string{"region": "west"}, nil), assignment("small", "app", map[string]string{"region": "east"}, nil)
	overrides := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		maps := randomMaps(rng)
		shared, problems := NewComposer(maps)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, a := range []*match.Assignment{west, east, west} {
			config, problems := shared.Compose(a)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			overrides += checkProvenance(t, seed, maps, config)
			shuffled := slices.Clone(maps)
			rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if diff := cmp.Diff(config, compose(t, a, shuffled...)); diff != "" {
				t.Fatalf("seed %d: in another order, from cold (-first +second):\n%s", seed, diff)
			}
		}
		if t.Failed() {
			return
		}
	}
	if overrides < 300 {
		t.Errorf("only %d values were overridden: the test does not test", overrides)
	}
}

func checkProvenance(t *testing.T, seed uint64, maps []controlplane.ConfigMap, config Config) (overrides int) {
	t.Helper()
	byName := map[string]controlplane.ConfigMap{}
	for _, m := range maps {
		byName[m.Name] = m
	}
	count := 0
	leaves(config.Data, nil, func(names []string, v any) {
		count++
		o, ok := config.Origins[Key(names...)]
		if !ok {
			t.Errorf("seed %d: %q has no origin", seed, names)
			return
		}
		m := byName[o.ConfigMap]
		if !slices.Contains(config.Inputs, o.ConfigMap) || !gives(m, names[0], v) {
			t.Errorf("seed %d: %q = %v is said to be from %s, which holds %v", seed, names, v, o.ConfigMap, m.Data)
		}
		if o.Place.File != m.File || o.Place.Line < 10 {
			t.Errorf("seed %d: %q is said to be at %s", seed, names, o.Place)
		}
		for _, name := range o.Overridden {
			overrides++
			if !slices.Contains(config.Inputs, name) || !strings.Contains(strings.Join(slices.Collect(keysOf(byName[name])), " "), names[0]) {
				t.Errorf("seed %d: %q is said to override %s, which has no such key", seed, names, name)
			}
			if name > o.ConfigMap {
				t.Errorf("seed %d: %q of %s is said to override %s, which comes later", seed, names, o.ConfigMap, name)
			}
		}
	})
	if count != len(config.Origins) {
		t.Errorf("seed %d: %d leaves, %d origins", seed, count, len(config.Origins))
	}
	return overrides
}

func keysOf(m controlplane.ConfigMap) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m.Data {
			if !yield(k) {
				return
			}
		}
	}
}

// Keys are distinct for distinct names.
func TestKeysAreDistinct(t *testing.T) {
	seen := map[string][]string{}
	parts := []string{"", ".", "a", "b", `"`, "a.b", `"a"`, "0"}
	var walk func(names []string)
	walk = func(names []string) {
		if len(names) > 0 {
			key := Key(names...)
			if before, twice := seen[key]; twice {
				t.Errorf("%q and %q are both %s", before, names, key)
			}
			seen[key] = slices.Clone(names)
		}
		if len(names) < 3 {
			for _, p := range parts {
				walk(append(names, p))
			}
		}
	}
	walk(nil)
}
