package compose

import "github.com/landfall-hub/landfall/scheduler/controlplane"

// Config is the configuration of an assignment. Assignments to which the same
// values apply share its maps: they are read-only.
type Config struct {
	// Data are the values: string, and within values that are YAML maps or lists
	// also bool, int64, uint64, float64, nil, []any and map[string]any.
	Data map[string]any
	// Origins tell where each leaf of Data comes from, by its Key.
	Origins map[string]Origin
	// Inputs are the names of the ConfigMaps that apply, in the order in which
	// they were merged.
	Inputs []string
	// Digest is a hash of Data, and of which of it is literal, in hexadecimal:
	// equal data, equal digest.
	Digest string
}

// Origin is where a value comes from.
type Origin struct {
	// ConfigMap is the name of the one that gave the value, Place the line of its
	// key there.
	ConfigMap string
	Place     controlplane.Place
	// Overridden are the names of the ConfigMaps that gave the leaf (or what
	// stood in its place) before, in the order in which they did.
	Overridden []string
	// Literal values were written in single quotes: they are strings even where
	// they look like numbers.
	Literal bool
}

// Violation is a schema's complaint about one value of one assignment.
type Violation struct {
	// Assignment is <cluster type>/<deployment target>.
	Assignment string
	// Key is that of the value (see Key); "" is the configuration as a whole.
	Key string
	// Schema is the name of the ConfigSchema, or <deployment target>#<n> for the
	// nth (from 1) of the target's own.
	Schema string
	// ConfigMap is the one that gave the value; "" where nobody did.
	ConfigMap string
	// Place is where the value was given, or the schema where nobody gave it.
	Place controlplane.Place
	// Message says what is wrong with the value.
	Message string
}

// Missing is a value that a schema requires and that nobody gives.
type Missing struct {
	Key, Schema string
	// Candidates are names of ConfigMaps that could give it, sorted: those that
	// give it to other assignments, or, where there are none, those that apply
	// and to which it could be added.
	Candidates []string
}
