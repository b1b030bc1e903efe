package compose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/schema"
)

const (
	// mostSchemaBytes and mostSchemaParts bound a schema's text and the mappings
	// in it: compiling takes the square of them.
	mostSchemaBytes = 256 << 10
	mostSchemaParts = 3_000
	// mostSteps is how often parts of a schema are applied to parts of one
	// configuration. References let a short schema ask for more than a lifetime.
	mostSteps = 100_000
)

// ownSchema is the address of every schema; each is compiled for itself.
const ownSchema = "landfall://schema"

// compiled is a schema that is ready, or what is wrong with it.
type compiled struct {
	schema *jsonschema.Schema
	steps  *steps
	err    error
}

// compile makes a schema of JSON or YAML text. Without $schema it is of
// draft-07, as Kalypso reads it.
func compile(text string) compiled {
	if len(text) > mostSchemaBytes {
		return compiled{err: fmt.Errorf("the schema is %d bytes long, %d are the most", len(text), mostSchemaBytes)}
	}
	doc, ok := controlplane.Structured(text)
	if _, isObject := doc.(map[string]any); !ok || !isObject {
		return compiled{err: errors.New("not a JSON Schema: it must be one mapping in JSON or YAML")}
	}
	if n := countMappings(doc); n > mostSchemaParts {
		return compiled{err: fmt.Errorf("the schema has %d mappings, %d are the most", n, mostSchemaParts)}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(refuse{})
	ready, err := guarded(func() (*jsonschema.Schema, error) {
		if err := c.AddResource(ownSchema, doc); err != nil {
			return nil, err
		}
		return c.Compile(ownSchema)
	})
	if err != nil {
		return compiled{err: explain(err)}
	}
	done := compiled{schema: ready, steps: &steps{}}
	done.steps.count(ready)
	// What cannot even look at nothing will not look at anything: references in
	// a circle, and most schemas that multiply.
	if _, err := done.validate(map[string]any{}); err != nil {
		return compiled{err: err}
	}
	return done
}

func countMappings(v any) int {
	sum := 0
	switch v := v.(type) {
	case map[string]any:
		sum = 1
		for _, sub := range v {
			sum += countMappings(sub)
		}
	case []any:
		for _, sub := range v {
			sum += countMappings(sub)
		}
	}
	return sum
}

// guarded turns a panic of the library, which reads strangers' text here, into
// an error.
func guarded[T any](do func() (T, error)) (v T, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case errSteps:
			err = r
		default:
			err = fmt.Errorf("the schema cannot be used: %v", r)
		}
	}()
	return do()
}

// refuse loads nothing: a schema that is fetched from elsewhere could change
// without a commit.
type refuse struct{}

// Load refuses.
func (refuse) Load(string) (any, error) { return nil, errRemote }

var errRemote = errors.New("a schema may refer to itself and to the drafts of JSON Schema only: copy what it refers to into $defs")

// explain shortens an error of the compiler.
func explain(err error) error {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Errorf("%s: %w", schema.StripUserInfo(load.URL), errRemote)
	}
	var invalid *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &cause) {
		for _, f := range faults(cause) {
			return fmt.Errorf("not a JSON Schema: %s %s", strings.TrimPrefix("/"+strings.Join(f.names, "/"), "//"), f.message)
		}
	}
	return fmt.Errorf("not a JSON Schema: %s", strings.ReplaceAll(err.Error(), ownSchema, ""))
}

// validate applies the schema to values. The error is about the schema, not
// about the values.
func (c compiled) validate(values map[string]any) (*jsonschema.ValidationError, error) {
	c.steps.left = mostSteps
	return guarded(func() (*jsonschema.ValidationError, error) {
		err := c.schema.Validate(values)
		if err == nil {
			return nil, nil
		}
		var found *jsonschema.ValidationError
		if !errors.As(err, &found) {
			return nil, err
		}
		return found, circular(found)
	})
}

// circular finds references that lead in a circle.
func circular(e *jsonschema.ValidationError) error {
	if k, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return fmt.Errorf("its references lead in a circle at %s", strings.TrimPrefix(k.URL, ownSchema))
	}
	for _, c := range e.Causes {
		if err := circular(c); err != nil {
			return err
		}
	}
	return nil
}

// steps counts how often parts of a schema are applied.
type steps struct{ left int }

// errSteps ends a validation that takes too long.
type errSteps struct{}

func (errSteps) Error() string {
	return fmt.Sprintf("it takes more than %d steps: its parts refer to one another so often that they multiply; make it simpler", mostSteps)
}

// Validate is called by the library for every part that is applied.
func (s *steps) Validate(*jsonschema.ValidatorContext, any) {
	if s.left--; s.left < 0 {
		panic(errSteps{})
	}
}

// count puts the counter into every part of a schema.
func (s *steps) count(root *jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	for waiting := []*jsonschema.Schema{root}; len(waiting) > 0; {
		part := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if part == nil || seen[part] {
			continue
		}
		seen[part] = true
		part.Extensions = append(part.Extensions, s)
		waiting = append(waiting, partsOf(part)...)
	}
}

// partsOf returns the schemas that a schema applies.
func partsOf(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.Contains, s.Items2020,
		s.UnevaluatedProperties, s.UnevaluatedItems, s.ContentSchema,
	}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		all = append(all, list...)
	}
	for _, sub := range s.Properties {
		all = append(all, sub)
	}
	for _, sub := range s.PatternProperties {
		all = append(all, sub)
	}
	for _, sub := range s.DependentSchemas {
		all = append(all, sub)
	}
	for _, sub := range s.Dependencies {
		all = append(all, anySchema(sub)...)
	}
	for _, sub := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		all = append(all, anySchema(sub)...)
	}
	return all
}

// anySchema returns what a field holds that may be a schema, several, or
// something else.
func anySchema(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}
