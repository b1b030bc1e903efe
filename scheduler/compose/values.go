package compose

import (
	"maps"
	"slices"
	"strconv"
)

// Value is a leaf of a configuration with where it comes from.
type Value struct {
	Key   string
	Value any
	Origin
}

// Values returns the leaves of the configuration, sorted by key.
func (c *Config) Values() []Value {
	found := map[string]any{}
	gather(found, nil, c.Data)
	all := make([]Value, 0, len(c.Origins))
	for _, key := range slices.Sorted(maps.Keys(c.Origins)) {
		all = append(all, Value{Key: key, Value: found[key], Origin: c.Origins[key]})
	}
	return all
}

// gather finds the values that are no maps and lists, or empty ones, by their
// keys.
func gather(found map[string]any, names []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			gather(found, append(slices.Clip(names), name), item)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, item := range v {
			gather(found, append(slices.Clip(names), strconv.Itoa(i)), item)
		}
		if len(v) > 0 {
			return
		}
	}
	found[Key(names...)] = v
}
