package compose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
	"github.com/landfall-hub/landfall/scheduler/match"
)

// seedSchema is the example of the configuration pattern (seed 001).
const seedSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "patch-to-core Platform Config Schema",
  "type": "object",
  "properties": {
    "ENVIRONMENT": {"type": "string", "description": "Environment Name"},
    "TimeWindowShift": {"type": "integer"},
    "QueryIntervalSec": {"type": "integer"},
    "module": {"type": "object", "properties": {"drop-threshold": {"type": "number"}}, "required": ["drop-threshold"]}
  },
  "required": ["ENVIRONMENT", "module"]
}`

func TestRule5SeedSchema(t *testing.T) {
	tests := map[string]struct {
		reason string
		data   []string
		want   []string
	}{
		"good": {"QueryIntervalSec is text in a ConfigMap", []string{"ENVIRONMENT", "Dev", "QueryIntervalSec", "911", "module", "drop-threshold: 0.5"}, nil},
		"missing": {"what is required must be there", []string{"QueryIntervalSec", "911", "module", "{}"}, []string{
			"ENVIRONMENT: is missing, and the schema requires it",
			"module.drop-threshold: is missing, and the schema requires it",
		}},
		"wrong types": {"a failure names the key", []string{"ENVIRONMENT", "[Dev]", "QueryIntervalSec", "often", "TimeWindowShift", "1.5", "module", "drop-threshold: high"}, []string{
			"ENVIRONMENT: is of type array, must be string",
			"QueryIntervalSec: is of type string, must be integer",
			"TimeWindowShift: is of type number, must be integer",
			"module.drop-threshold: is of type string, must be number",
		}},
		"the environment is 42": {"a number may be a string where one is wanted", []string{"ENVIRONMENT", "42", "module", "drop-threshold: '0.5'"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			found := validate(t, anywhere(), []controlplane.ConfigMap{configMap("m", nil, tc.data...)}, configSchema("s", nil, seedSchema))
			var got []string
			for _, v := range found {
				got = append(got, v.Key+": "+v.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: violations (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Numbers, and true and false, are text in a ConfigMap: they count as what the
// schema wants them to be.
func TestRule5Readings(t *testing.T) {
	const numberOrNothing = `{"properties": {"K": {"type": "number"}}}`
	tests := map[string]struct {
		reason, value, schema string
		want                  string
	}{
		"integer":            {"", "42", `{"type": "integer"}`, ""},
		"negative":           {"", "-1.5e3", `{"type": "number", "maximum": -1500}`, ""},
		"too small":          {"the complaint is about the number", "3", `{"type": "integer", "minimum": 5}`, "must be at least 5"},
		"range without type": {"a number is first of all a number", "3", `{"minimum": 5}`, "must be at least 5"},
		"string":             {"but a string where one is wanted", "42", `{"type": "string", "pattern": "^4"}`, ""},
		"bad string":         {"which then must be right", "42", `{"type": "string", "pattern": "^5"}`, "must match the pattern ^5"},
		"enum of strings":    {"", "1", `{"enum": ["1", "2"]}`, ""},
		"enum of numbers":    {"", "1", `{"enum": [1, 2]}`, ""},
		"either":             {"either form will do", "42", `{"anyOf": [{"type": "boolean"}, {"type": "string"}]}`, ""},
		"both kinds":         {"", "007", `{"type": ["string", "boolean"]}`, ""},
		"boolean":            {"true and false are booleans where one is wanted", "true", `{"type": "boolean"}`, ""},
		"boolean as text":    {"and strings where not", "false", `{"type": "string"}`, ""},
		"const true":         {"", "true", `{"const": true}`, ""},
		"yes":                {"yes is no boolean in JSON", "yes", `{"type": "boolean"}`, "is of type string, must be boolean"},
		"literal number":     {"single quotes: a string", "'42'", `{"type": "integer"}`, "is of type string, must be integer"},
		"literal string":     {"", "'42'", `{"type": "string"}`, ""},
		"words":              {"", "many", `{"type": "integer"}`, "is of type string, must be integer"},
		"huge":               {"a number too large for any machine is text", "1e999", `{"type": "number"}`, "is of type string, must be number"},
		"hexadecimal":        {"", "0x10", `{"type": "integer"}`, "is of type string, must be integer"},
		"in a list":          {"at any depth", "['1', '2']", `{"items": {"type": "integer"}}`, ""},
		"in a map":           {"at any depth", "{a: {b: '1'}}", `{"properties": {"a": {"properties": {"b": {"type": "string"}}}}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, draft := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
				schema := fmt.Sprintf(`{"$schema": %q, "properties": {"K": %s}}`, draft, tc.schema)
				found := validate(t, anywhere(), []controlplane.ConfigMap{configMap("m", nil, "K", tc.value, "OTHER", "1")},
					configSchema("s", nil, schema), configSchema("t", nil, strings.Replace(numberOrNothing, "K", "OTHER", 1)))
				got := ""
				for _, v := range found {
					got += v.Message
				}
				if got != tc.want {
					t.Errorf("%s (%s): %q, want %q", tc.reason, draft, got, tc.want)
				}
			}
		})
	}
}

// A failure names the assignment, key, schema and the ConfigMap to blame, and
// where it is.
func TestRule5Blame(t *testing.T) {
	a := assignment("large", "app", map[string]string{"region": "west"}, nil)
	a.Target.Schemas = []string{"named", "{properties: {URL: {pattern: '^https:'}}, required: [PORT]}"}
	maps := []controlplane.ConfigMap{
		configMap("a", nil, "URL", "https://a", "LIST", "[1]", "AA", "x"), configMap("b", map[string]string{"region": "west"}, "URL", "mysql://user:secret@b", "LIST", "[1]"),
	}
	schemas := []controlplane.ConfigSchema{
		configSchema("everywhere", nil, `{"properties": {"LIST": {"uniqueItems": true}}}`),
		configSchema("east", map[string]string{"region": "east"}, `{"required": ["EAST"]}`),
		configSchema("named", map[string]string{"region": "east"}, `{"additionalProperties": false, "properties": {"AA": {}, "LIST": {}, "URL": {}, "NAMED": {}}, "required": ["NAMED"]}`),
		configSchema("west", map[string]string{"region": "west", "platform-config": "true"}, `{"properties": {"LIST": {"maxItems": 1}}, "maxProperties": 1}`),
	}
	at := func(file string, line int) controlplane.Place { return controlplane.Place{File: file, Line: line} }
	want := []Violation{
		{Key: "", Schema: "west", ConfigMap: "b", Place: at("b.yaml", 11), Message: "has 3 keys, must have 1 at most"},
		{Key: "LIST", Schema: "everywhere", ConfigMap: "b", Place: at("b.yaml", 11), Message: "items 0 and 1 are equal, and must not be"},
		{Key: "LIST", Schema: "west", ConfigMap: "b", Place: at("b.yaml", 11), Message: "has 2 items, must have 1 at most"},
		{Key: "NAMED", Schema: "named", Place: at("named.yaml", 1), Message: "is missing, and the schema requires it"},
		{Key: "PORT", Schema: "hello-app#2", Place: at("hello.yaml", 5), Message: "is missing, and the schema requires it"},
		{Key: "URL", Schema: "hello-app#2", ConfigMap: "b", Place: at("b.yaml", 10), Message: "must match the pattern ^https:"},
	}
	for i := range want {
		want[i].Assignment = "large/hello-app"
	}
	k, problems := NewChecker(schemas)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	config := compose(t, a, maps...)
	for range 2 { // the second time from memory
		got := k.Validate(a, &config)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("violations (-want +got):\n%s", diff)
		}
		for _, v := range got {
			if strings.Contains(v.Message, "secret") {
				t.Errorf("a value is in a message: %s", v.Message)
			}
		}
	}
	// What stops one assignment stops no other.
	other := anywhere()
	good := compose(t, other, maps...)
	if got := k.Validate(other, &good); len(got) > 0 {
		t.Errorf("another assignment: %v", got)
	}
}

func TestRule5Messages(t *testing.T) {
	tests := map[string]struct{ data, schema, want string }{
		"anyOf":             {"a", `{"anyOf": [{"type": "integer"}, {"type": "null"}]}`, "K: has none of the forms that the schema allows (anyOf)"},
		"anyOf of one":      {"a", `{"anyOf": [{"type": "integer"}]}`, "K: is of type string, must be integer"},
		"oneOf":             {"a", `{"oneOf": [{"type": "integer"}, {"type": "null"}]}`, "K: has none of the forms that the schema allows (oneOf)"},
		"oneOf, two":        {"a", `{"oneOf": [{"type": "string"}, {"minLength": 1}]}`, "K: has more than one of the forms of which the schema allows one (oneOf)"},
		"not":               {"a", `{"not": {"type": "string"}}`, "K: has a form that the schema forbids (not)"},
		"enum":              {"a", `{"enum": ["b", 1]}`, `K: must be one of "b", 1`},
		"const":             {"a", `{"const": {"b": 1}}`, `K: must be {"b":1}`},
		"format":            {"a", `{"format": "ipv4"}`, "K: must be a valid ipv4"},
		"length":            {"a", `{"minLength": 2}`, "K: is 1 characters long, must be 2 at least"},
		"multiple":          {"3", `{"multipleOf": 2}`, "K: must be a multiple of 2"},
		"exclusive":         {"3", `{"exclusiveMaximum": 3}`, "K: must be less than 3"},
		"false":             {"3", `false`, "K: is not allowed here"},
		"additional":        {"{a: 1, b: 2}", `{"properties": {"a": {}}, "additionalProperties": false}`, "K.b: is not known to the schema, which allows nothing else"},
		"contains":          {"[1]", `{"contains": {"const": 2}}`, "K: is not what the schema wants (contains)"},
		"property names":    {"{ab: 1}", `{"propertyNames": {"maxLength": 1}}`, `: has a key "ab", which the schema does not allow (propertyNames)`},
		"dependency":        {"{a: 1}", `{"dependencies": {"a": ["b"]}}`, "K.b: is missing, and the schema requires it together with a"},
		"references":        {"a", `{"$ref": "#/definitions/x"}`, "K: is of type string, must be integer"},
		"all of references": {"1", `{"allOf": [{"$ref": "#/definitions/x"}, {"$ref": "#/definitions/y"}]}`, "K: must be at least 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			schema := fmt.Sprintf(`{"properties": {"K": %s}, "definitions": {"x": {"type": "integer"}, "y": {"minimum": 2}}}`, tc.schema)
			found := validate(t, anywhere(), []controlplane.ConfigMap{configMap("m", nil, "K", tc.data)}, configSchema("s", nil, schema))
			var got []string
			for _, v := range found {
				got = append(got, v.Key+": "+v.Message)
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// A schema that cannot be used is a problem, and a violation wherever it
// applies; it loads nothing and takes no time.
func TestBadSchemas(t *testing.T) {
	var fan strings.Builder // each part asks for the next one twice
	fan.WriteString(`{"allOf": [{"$ref": "#/definitions/p0"}], "definitions": {`)
	for i := range 60 {
		fmt.Fprintf(&fan, `"p%d": {"allOf": [{"$ref": "#/definitions/p%d"}, {"$ref": "#/definitions/p%d"}]}, `, i, i+1, i+1)
	}
	fan.WriteString(`"p60": {"minProperties": 0}}}`)
	const remote = "a schema may refer to itself and to the drafts of JSON Schema only: copy what it refers to into $defs"
	tests := map[string]struct{ reason, schema, want string }{
		"no JSON":     {"", `{"type": `, "not a JSON Schema: it must be one mapping in JSON or YAML"},
		"a list":      {"", `[]`, "not a JSON Schema: it must be one mapping in JSON or YAML"},
		"bad keyword": {"the complaint says where", `{"properties": {"K": {"type": "text"}}}`, "not a JSON Schema: /properties/K/type has none of the forms that the schema allows (anyOf)"},
		"bad pattern": {"", `{"pattern": "("}`, "not a JSON Schema: /pattern must be a valid regex"},
		"remote ref":  {"nothing is fetched", `{"$ref": "https://127.0.0.1:1/x.json"}`, "https://127.0.0.1:1/x.json: " + remote},
		"a file":      {"nor read", `{"properties": {"K": {"$ref": "file:///etc/passwd"}}}`, "file:///etc/passwd: " + remote},
		"own draft":   {"nor are other drafts", `{"$schema": "https://example.com/draft"}`, "https://example.com/draft: " + remote},
		"no such ref": {"", `{"$ref": "#/definitions/none"}`, `not a JSON Schema: json-pointer in "#/definitions/none" not found`},
		"circle":      {"references in a circle", `{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}`, "its references lead in a circle at #/definitions/a"},
		"bomb": {
			"parts that multiply", fan.String(),
			"it takes more than 100000 steps: its parts refer to one another so often that they multiply; make it simpler",
		},
		"bomb of 2020": {
			"in another draft, and only counted", strings.Replace(strings.Replace(fan.String(), "{", `{"$schema": "https://json-schema.org/draft/2020-12/schema", `, 1), "allOf", "anyOf", 1),
			"it takes more than 100000 steps: its parts refer to one another so often that they multiply; make it simpler",
		},
		"too many parts": {"", `{"properties": {"K": {}` + manyProperties(mostSchemaParts) + `}}`, "the schema has 3003 mappings, 3000 are the most"},
		"too long":       {"", `{"title": "` + strings.Repeat("x", mostSchemaBytes) + `"}`, "the schema is 262157 bytes long, 262144 are the most"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bad, good := configSchema("bad", map[string]string{"region": "west"}, tc.schema), configSchema("good", nil, `{"required": ["X"]}`)
			k, problems := NewChecker([]controlplane.ConfigSchema{bad, good})
			if len(problems) != 1 || problems[0].Place != bad.Place || problems[0].Name != "bad" || problems[0].Message != tc.want {
				t.Fatalf("%s: problems %v, want %q", tc.reason, problems, tc.want)
			}
			west := assignment("large", "app", map[string]string{"region": "west"}, nil)
			config := compose(t, west)
			found := k.Validate(west, &config)
			if len(found) != 2 || found[0].Message != "the ConfigSchema cannot be used: "+problems[0].Message || found[1].Key != "X" {
				t.Errorf("%s: violations %v", tc.reason, found)
			}
			if found := k.Validate(anywhere(), &config); len(found) != 1 {
				t.Errorf("%s: elsewhere %v", tc.reason, found)
			}
			// The same from a workload's own file stops that workload alone.
			own := anywhere()
			own.Target.Schemas = []string{tc.schema}
			if found := k.Validate(own, &config); len(found) != 2 || found[0].Schema != "hello-app#1" {
				t.Errorf("%s: as the target's own: %v", tc.reason, found)
			}
		})
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `, "K%d": {}`, i)
	}
	return b.String()
}

// A schema that multiplies only where the data are deep is stopped, too.
func TestBombByData(t *testing.T) {
	schema := `{"properties": {"K": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"allOf": [{"$ref": "#/definitions/b"}, {"$ref": "#/definitions/b"}]},
		"b": {"properties": {"x": {"$ref": "#/definitions/a"}}}}}`
	found := validate(t, anywhere(), []controlplane.ConfigMap{configMap("m", nil, "K", strings.Repeat("{x: ", 60)+"1"+strings.Repeat("}", 60))}, configSchema("s", nil, schema))
	if len(found) != 1 || found[0].Message != (errSteps{}).Error() {
		t.Errorf("violations %v", found)
	}
}

func TestBrokenSchemaDocument(t *testing.T) {
	s := configSchema("s", nil, "")
	s.Broken = "s.yaml:4: no YAML"
	k, problems := NewChecker([]controlplane.ConfigSchema{s})
	config := compose(t, anywhere())
	found := k.Validate(anywhere(), &config)
	if len(problems) != 0 || len(found) != 1 || found[0].Message != "the ConfigSchema cannot be used: s.yaml:4: no YAML" {
		t.Errorf("problems %v, violations %v", problems, found)
	}
}

func TestNamedSchemaIsNotThere(t *testing.T) {
	a := anywhere()
	a.Target.Schemas = []string{"nobody"}
	k, _ := NewChecker(nil)
	config := compose(t, a)
	want := []Violation{{
		Assignment: "large/hello-app", Schema: "hello-app#1", Place: a.Target.Place,
		Message: `there is no ConfigSchema "nobody": correct the name, or add one`,
	}}
	if diff := cmp.Diff(want, k.Validate(a, &config)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// Rule 4: what the schemas still want, and who could give it.
func TestRule4Missing(t *testing.T) {
	maps := []controlplane.ConfigMap{
		configMap("azure-app-config", nil, "region.east.PORT", "1"),
		configMap("common", nil, "module", "a: 1"),
		configMap("east", map[string]string{"region": "east"}, "PORT", "1", "module", "{b: 2, c: {d: 1}}"),
		configMap("far-east", map[string]string{"region": "far-east"}, "PORT", "2"),
	}
	k, _ := NewChecker([]controlplane.ConfigSchema{configSchema("s", nil,
		`{"required": ["PORT", "HOST"], "properties": {"HOST": {"type": "string"}, "module": {"required": ["a", "b", "c"]}}}`)})
	config := compose(t, anywhere(), maps...)
	want := []Missing{
		{Key: "HOST", Schema: "s", Candidates: []string{"common"}},
		{Key: "PORT", Schema: "s", Candidates: []string{"azure-app-config", "east", "far-east"}},
		{Key: "module.b", Schema: "s", Candidates: []string{"east"}},
		{Key: "module.c", Schema: "s", Candidates: []string{"east"}},
	}
	if diff := cmp.Diff(want, k.Missing(anywhere(), &config, maps)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	full := compose(t, assignment("large", "app", map[string]string{"region": "east"}, nil), append(maps, configMap("host", nil, "HOST", "h"))...)
	if got := k.Missing(anywhere(), &full, maps); len(got) > 0 {
		t.Errorf("missing %v where everything is there", got)
	}
}

var benchmarked []Violation

func BenchmarkComposeAndValidate(b *testing.B) {
	var maps []controlplane.ConfigMap
	for i := range 100 {
		maps = append(maps, configMap(fmt.Sprintf("m%03d", i), map[string]string{"ring": fmt.Sprint(i % 20)}, fmt.Sprintf("K%d", i), "1", "module", fmt.Sprintf("x%d: {y: 1}", i)))
	}
	schemas := []controlplane.ConfigSchema{configSchema("s", nil, seedSchema)}
	var types []*controlplane.ClusterType
	for i := range 200 {
		types = append(types, &controlplane.ClusterType{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"ring": fmt.Sprint(i % 20)}})
	}
	var all []match.Assignment
	for i := range 500 {
		target := &match.DeploymentTarget{Name: fmt.Sprintf("w%d-t", i), Workload: fmt.Sprintf("w%d", i)}
		for _, c := range types {
			all = append(all, match.Assignment{ClusterType: c, Target: target})
		}
	}
	for b.Loop() {
		c, _ := NewComposer(maps)
		k, _ := NewChecker(schemas)
		for i := range all {
			config, _ := c.Compose(&all[i])
			benchmarked = k.Validate(&all[i], &config)
		}
	}
	b.ReportMetric(float64(len(all)), "assignments/op")
}
