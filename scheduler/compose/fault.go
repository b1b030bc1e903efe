package compose

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// fault is one complaint of a schema about one value.
type fault struct {
	// names lead to the value.
	names []string
	// message does not repeat the value, which may be nobody else's business.
	message string
	// missing faults are about values that are not there.
	missing bool
}

// faults takes the library's tree of errors apart. Where one of several forms
// would do and none does, that is one fault, not one for each form.
func faults(e *jsonschema.ValidationError) []fault {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		if len(e.Causes) == 1 {
			return faults(e.Causes[0])
		}
		return []fault{{names: at, message: "has none of the forms that the schema allows (anyOf)"}}
	case *kind.OneOf:
		if len(e.Causes) == 1 {
			return faults(e.Causes[0])
		}
		if len(k.Subschemas) > 0 {
			return []fault{{names: at, message: "has more than one of the forms of which the schema allows one (oneOf)"}}
		}
		return []fault{{names: at, message: "has none of the forms that the schema allows (oneOf)"}}
	case *kind.PropertyNames:
		// The library's location of such an error is not to be trusted.
		return []fault{{message: "has a key " + cut(strconv.Quote(k.Property)) + ", which the schema does not allow (propertyNames)"}}
	case *kind.Required:
		return absent(at, k.Missing, "is missing, and the schema requires it")
	case *kind.DependentRequired:
		return absent(at, k.Missing, "is missing, and the schema requires it together with "+k.Prop)
	case *kind.Dependency:
		return absent(at, k.Missing, "is missing, and the schema requires it together with "+k.Prop)
	case *kind.AdditionalProperties:
		all := make([]fault, len(k.Properties))
		for i, name := range k.Properties {
			all[i] = fault{names: below(at, name), message: "is not known to the schema, which allows nothing else"}
		}
		return all
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		var all []fault
		for _, c := range e.Causes {
			all = append(all, faults(c)...)
		}
		return all
	}
	return []fault{{names: at, message: wants(e.ErrorKind)}}
}

// below returns the names that lead to a value in another. The library reuses
// what it hands out.
func below(at []string, name string) []string { return append(slices.Clone(at), name) }

func absent(at, names []string, message string) []fault {
	all := make([]fault, len(names))
	for i, name := range names {
		all[i] = fault{names: below(at, name), message: message, missing: true}
	}
	return all
}

// wants says what a schema wants of a value.
func wants(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("is of type %s, must be %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Enum:
		return "must be one of " + shown(k.Want...)
	case *kind.Const:
		return "must be " + shown(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + cut(k.Want)
	case *kind.Format:
		return "must be a valid " + cut(k.Want)
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("is %d characters long, must be %d at least", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("is %d characters long, must be %d at most", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d items, must have %d at least", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items, must have %d at most", k.Got, k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("has %d keys, must have %d at least", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d keys, must have %d at most", k.Got, k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal, and must not be", k.Duplicates[0], k.Duplicates[1])
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items more than the schema allows", k.Count)
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return "has a form that the schema forbids (not)"
	}
	return fmt.Sprintf("is not what the schema wants (%s)", strings.Join(k.KeywordPath(), "."))
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

// shown writes values of a schema out.
func shown(values ...any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		texts[i] = string(text)
	}
	return cut(strings.Join(texts, ", "))
}

// cut shortens what a schema says.
func cut(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
