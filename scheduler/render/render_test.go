package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// input is what the tests render with.
func input() Input {
	return Input{
		DeploymentTargetName: "hello-world-app-functional-test", Namespace: "dev-drone-hello-world-app-functional-test",
		Environment: "dev", Workspace: "kaizen-app-team", Workload: "hello-world-app", ClusterType: "drone",
		Labels:    map[string]string{"purpose": "functional-test", "edge": "true"},
		Manifests: map[string]any{"repo": "https://git.example/app", "branch": "dev", "path": "./functional-test"},
		ConfigData: map[string]any{
			"REGION": "East US", "PORT": "8080", "DEBUG": "false",
			"hosts":  []any{map[string]any{"name": "a", "port": int64(1)}, map[string]any{"name": "b"}},
			"nested": map[string]any{"deep": map[string]any{"key": "value"}},
			"greet":  "hello {{ .Workload }}",
		},
	}
}

// source makes a template document of manifests, the first in line 10 of its file.
func source(content controlplane.ContentType, manifests ...string) *controlplane.Template {
	t := &controlplane.Template{
		Place: controlplane.Place{File: "templates/t.yaml", Line: 1}, Name: "t",
		Type: controlplane.TemplateReconciler, ContentType: content,
	}
	for i, m := range manifests {
		t.Manifests = append(t.Manifests, controlplane.Manifest{Place: controlplane.Place{File: "templates/t.yaml", Line: 10 * (i + 1)}, Text: m})
	}
	return t
}

func render(t *testing.T, content controlplane.ContentType, manifests ...string) (string, error) {
	t.Helper()
	p, err := Parse(source(content, manifests...))
	if err != nil {
		return "", err
	}
	text, err := p.Execute(input(), Limits{})
	return string(text), err
}

func TestExecute(t *testing.T) {
	const yml, env, js = controlplane.ContentYAML, controlplane.ContentEnv, controlplane.ContentJSON
	for name, tc := range map[string]struct {
		reason    string
		content   controlplane.ContentType
		manifests []string
		want      string
	}{
		"fields": {
			reason: "every name of the contract is there", content: yml,
			manifests: []string{"a: [{{.DeploymentTargetName}}, {{.Namespace}}, {{.Environment}}, {{.Workspace}}, {{.Workload}}, {{.ClusterType}}, " +
				"{{.Labels.purpose}}, {{.Manifests.branch}}, {{.ConfigData.PORT}}]"},
			want: "a: [hello-world-app-functional-test, dev-drone-hello-world-app-functional-test, dev, kaizen-app-team, hello-world-app, drone, functional-test, dev, 8080]\n",
		},
		"no content type": {reason: "yaml is the default", manifests: []string{"a: b"}, want: "a: b\n"},
		"joined": {
			reason: "several manifests are documents of one file, whatever white space they end with", content: yml,
			manifests: []string{"a: 1\n\n", "  \n\t", "---\nb: 2", "\nc: 3\n"}, want: "a: 1\n---\nb: 2\n---\nc: 3\n",
		},
		"nothing": {reason: "no file where all manifests are white space", content: yml, manifests: []string{" \n", "{{if false}}a: 1{{end}}"}, want: ""},
		"optional key": {
			reason: "a key that is not there may be tested, in any form of testing", content: yml,
			manifests: []string{`a: {{if eq .Manifests.type "kustomize"}}k{{else if .Manifests.type}}x{{else}}{{.Manifests.type | default "d"}}{{end}}` +
				`{{with .Manifests.secret}}{{.}}{{end}}{{if ne .Manifests.type "helm"}}!{{end}}{{range .Manifests.many}}{{.}}{{else}}-{{end}}`},
			want: "a: d!-\n",
		},
		"kalypso's sample": {
			reason: "the template of the sample control plane, with text left over after its last line", content: yml,
			manifests: []string{"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-config\n  namespace: {{ .Namespace}}\ndata:\n{{ toYaml .Labels | indent 2}}"},
			want: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-config\n  namespace: dev-drone-hello-world-app-functional-test\n" +
				"data:\n  edge: \"true\"\n  purpose: functional-test\n",
		},
		"stringify": {
			reason: "the data of a ConfigMap are strings: numbers and flags are quoted, structures become texts", content: yml,
			manifests: []string{"data:\n{{ stringify .ConfigData | indent 2}}"},
			want: "data:\n  DEBUG: \"false\"\n  PORT: \"8080\"\n  REGION: East US\n  greet: hello hello-world-app\n" +
				"  hosts: |\n    - name: a\n      port: 1\n    - name: b\n  nested: |\n    deep:\n      key: value\n",
		},
		"stringify of nothing": {reason: "an empty map is a map, too", content: yml, manifests: []string{"data: {{ stringify (dict) }}"}, want: "data: {}\n"},
		"toJson":               {reason: "text is not escaped for HTML", content: js, manifests: []string{`{{ toJson (dict "b" "<&>" "a" (list 1 true)) }}`}, want: `{"a":[1,true],"b":"<&>"}` + "\n"},
		"unquote":              {reason: "quotes and space at both ends go", content: yml, manifests: []string{`a: {{ unquote " \"it's\" " }}`}, want: "a: it's\n"},
		"hash":                 {reason: "a number that depends on the value alone", content: yml, manifests: []string{`a: {{ eq (hash (dict "x" 1 "y" 2)) (hash (dict "y" 2 "x" 1)) }} {{ eq (hash 1) (hash 2) }}`}, want: "a: true false\n"},
		"keys in order":        {reason: "sprig's own keys and values come in any order", content: yml, manifests: []string{`a: "{{ keys .Manifests }} {{ values .Manifests }}"`}, want: "a: \"[branch path repo] [dev ./functional-test https://git.example/app]\"\n"},
		"counting": {
			reason: "until, untilStep and seq count as sprig's do", content: yml,
			manifests: []string{`a: "{{ until 3 }} {{ until -2 }} {{ until 0 }} {{ untilStep 2 9 3 }} {{ untilStep 5 0 -2 }} {{ untilStep 0 5 0 }} {{ untilStep 0 5 -1 }}"` + "\n" +
				`b: "{{ seq 3 }}|{{ seq -1 }}|{{ seq 2 4 }}|{{ seq 4 2 }}|{{ seq 0 2 6 }}|{{ seq 6 -3 0 }}|{{ seq 6 3 0 }}"` + "\n" +
				`c: {{ untilStep 0 9223372036854775807 4611686018427387904 | len }}`},
			want: "a: \"[0 1 2] [0 -1] [] [2 5 8] [5 3 1] [] []\"\nb: \"1 2 3|1 0 -1|2 3 4|4 3 2|0 2 4 6|6 3 0|\"\nc: 2\n",
		},
		"nested": {
			reason: "output that is a template is executed again, with the same input", content: yml,
			manifests: []string{"a: {{ .ConfigData.greet }}\nb: {{ `{{ print \"{{ .Environment }}\" }}` }}"}, want: "a: hello hello-world-app\nb: dev\n",
		},
		"defined": {
			reason: "templates of templates, with break and continue", content: yml,
			manifests: []string{`{{define "x"}}{{range $i, $v := .}}{{if eq $i 1}}{{continue}}{{end}}{{if eq $i 3}}{{break}}{{end}}{{$v}}{{end}}{{end}}a: {{template "x" list "p" "q" "r" "s"}}`},
			want:      "a: pr\n",
		},
		"env": {
			reason: "an env file's lines need nothing between them", content: env,
			manifests: []string{"export A='{{.ConfigData.REGION}}'", "export B=1\n"}, want: "export A='East US'\nexport B=1\n",
		},
		"json": {reason: "indented as it was written", content: js, manifests: []string{"", `{{ toPrettyJson .Labels }}`}, want: "{\n  \"edge\": \"true\",\n  \"purpose\": \"functional-test\"\n}\n"},
		"changes its input": {
			reason: "what a template writes into its input is gone when it is run again", content: yml,
			manifests: []string{`{{ $_ := set .ConfigData "REGION" "x" }}{{ $_ := unset .ConfigData.nested "deep" }}a: {{ .ConfigData.REGION }}`, "b: {{.ConfigData.REGION}} {{.ConfigData.nested.deep.key}}"},
			want:      "a: x\n---\nb: East US value\n",
		},
		"merges": {
			reason: "sprig's merging, also with parts in common", content: yml,
			manifests: []string{`{{ $a := dict "x" 1 }}{{ $b := merge (dict "y" 2) $a }}{{ $c := mergeOverwrite (dict "x" 0 "z" (dict "k" "v")) $b (dict "z" (dict "l" "w")) }}a: {{ toJson $c }}`},
			want:      `a: {"x":1,"y":2,"z":{"k":"v","l":"w"}}` + "\n",
		},
		"yaml merge keys": {reason: "<< may stand twice", content: yml, manifests: []string{"a: &a {x: 1}\nb: &b {y: 1}\nc:\n  <<: *a\n  <<: *b"}, want: "a: &a {x: 1}\nb: &b {y: 1}\nc:\n  <<: *a\n  <<: *b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, tc.content, tc.manifests...)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		content   controlplane.ContentType
		manifests []string
		want      []string
	}{
		"no template":    {reason: "a mistake is found when the control plane is read", manifests: []string{"a: 1", "a: 1\nb: {{ if }}"}, want: []string{`templates/t.yaml:21: Template "t":`, "missing value for if"}},
		"no function":    {reason: "what sprig has and we do not", manifests: []string{"a: {{ now }}"}, want: []string{"templates/t.yaml:10", `function "now" not defined`}},
		"our functions":  {reason: "nobody calls the meter", manifests: []string{"a: {{ landfallLeave }}"}, want: []string{`function "landfallLeave" not defined`}},
		"no value":       {reason: "the expression is named", manifests: []string{"a: 1\n\nb: {{ .Manifests.secret }}"}, want: []string{"templates/t.yaml:12: ", "{{.Manifests.secret}} has no value"}},
		"no value, deep": {reason: "what is missing in something missing", manifests: []string{"a: {{ .Manifests.secret.name }}"}, want: []string{"templates/t.yaml:10: ", ".Manifests.secret.name"}},
		"no value, said": {reason: "also where it is only text", manifests: []string{"a: 1\nb: <no value>"}, want: []string{"line 2 of what it renders to holds <no value>"}},
		"no field":       {reason: "a name outside the contract", manifests: []string{"a: {{ .Repo }}"}, want: []string{"templates/t.yaml:10: ", "can't evaluate field Repo"}},
		"fail":           {reason: "the template's own complaint", manifests: []string{"a: 1\n{{ fail \"no such region\" }}"}, want: []string{"templates/t.yaml:11: ", "no such region"}},
		"panics":         {reason: "a function of sprig's that panics", manifests: []string{"a: {{ substr 5 2 \"abc\" }}"}, want: []string{"templates/t.yaml:10: ", "substr"}},
		"no yaml":        {reason: "output must parse", manifests: []string{"a: 1\n b: 2\nc: ["}, want: []string{"templates/t.yaml:10: ", "not YAML: line 2"}},
		"a key twice":    {reason: "which many parsers take and none means", manifests: []string{"a: 1\nb:\n  c: 1\n  d: 1\n  c: 2"}, want: []string{`the key "c" twice`, "line 5"}},
		"no json":        {reason: "output must parse", content: controlplane.ContentJSON, manifests: []string{"{\n\"a\": 1,\n}"}, want: []string{"not JSON: line 3"}},
		"two json":       {reason: "a JSON file is one value", content: controlplane.ContentJSON, manifests: []string{"1", "2"}, want: []string{"templates/t.yaml:20: ", "second manifest"}},
		"content type":   {reason: "a type that is not known", content: "toml", manifests: []string{"a"}, want: []string{"templates/t.yaml:1: ", "yaml, env or json"}},
		"nested mistake": {reason: "the line is that of the output", manifests: []string{"a: 1\nb: {{ `{{ .Manifests.secret }}` }}"}, want: []string{"templates/t.yaml:10: ", "in line 2 of what it rendered to", "{{.Manifests.secret}} has no value"}},
		"nested no template": {
			reason: "what renders to something that only looks like a template", manifests: []string{"a: {{ `{{ if }}` }}"},
			want: []string{"templates/t.yaml:10: ", "in line 1 of what it rendered to", "missing value for if"},
		},
		"nested without end": {
			reason: "at most five deep", manifests: []string{`{{ $x := "{{ $x := %q }}{{ printf $x $x }}" }}a: {{ printf $x $x }}`},
			want: []string{"still holds {{", "rendered 6 times"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tc.content, tc.manifests...)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: got %v, want an *Error", tc.reason, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q does not say %q", tc.reason, err, want)
				}
			}
			if strings.Contains(err.Error(), "landfall") && !strings.Contains(name, "our") {
				t.Errorf("%q shows what is inside", err)
			}
			if errors.Is(err, ErrLimit) {
				t.Errorf("%q is not about a limit", err)
			}
		})
	}
}

func TestBrokenTemplateIsRefused(t *testing.T) {
	s := source(controlplane.ContentYAML, "a: 1")
	s.Broken = "templates/t.yaml:3: spec.manifests is no list"
	if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), "spec.manifests is no list") {
		t.Errorf("got %v", err)
	}
	s = source(controlplane.ContentYAML, "a: 1")
	s.Type = "cluster"
	if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), "reconciler, namespace or config") {
		t.Errorf("got %v", err)
	}
}

func TestFileNames(t *testing.T) {
	got := map[string]bool{}
	for _, kind := range []controlplane.TemplateType{controlplane.TemplateNamespace, controlplane.TemplateConfig, controlplane.TemplateReconciler} {
		for _, content := range []controlplane.ContentType{"", controlplane.ContentYAML, controlplane.ContentEnv, controlplane.ContentJSON} {
			s := source(content)
			s.Type = kind
			p, err := Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			got[p.FileName()] = true
		}
	}
	want := map[string]bool{}
	for _, name := range []string{"namespace", "platform-config", "reconciler"} {
		for _, ending := range []string{".yaml", ".sh", ".json"} {
			want[name+ending] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a template is given is others' too.
func TestInputIsLeftAlone(t *testing.T) {
	for _, text := range []string{
		`{{ $_ := set .ConfigData "REGION" "x" }}{{ $_ := unset .Manifests "repo" }}{{ $_ := set (index .ConfigData.hosts 0) "name" "x" }}a: 1`,
		"{{ `{{ $_ := set .ConfigData.nested.deep \"key\" 1 }}a: 1` }}",
		`{{ $_ := merge .ConfigData (dict "new" 1) }}{{ $_ := mergeOverwrite .ConfigData.nested (dict "deep" 1) }}a: {{ sortAlpha (keys .ConfigData) }}`,
	} {
		p, err := Parse(source(controlplane.ContentYAML, text))
		if err != nil {
			t.Fatal(err)
		}
		in := input()
		if _, err := p.Execute(in, Limits{}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(input(), in); diff != "" {
			t.Errorf("%s changed its input:\n%s", text, diff)
		}
	}
}
