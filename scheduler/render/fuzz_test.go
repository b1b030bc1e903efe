package render

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// Whatever stands in a template, it is refused or runs to its end: without
// taking the process with it, and the same way each time.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"a: {{ .Namespace | quote }}",
		"{{ toYaml .ConfigData | indent 2 }}",
		`{{ range $k, $v := .ConfigData }}{{ $k }}={{ $v | toString | squote }}` + "\n{{ end }}",
		"{{ `{{ .Workload }}` }}",
		`{{ $x := dict "a" (list 1 2) }}{{ $_ := set $x "b" $x }}{{ $x | toJson }}`,
		`{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}`,
		`{{ range 1000000000 }}{{ end }}`,
		`{{ printf "%[1]*d %-10s" 5 "x" }}`,
		`{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}`,
		`{{ merge (dict "a" (dict "b" 1)) .ConfigData | hash }}`,
		`{{ (index .ConfigData.hosts 0).name | b64enc | trunc 5 | splitList "" | join "-" }}`,
		`{{ with pick .Manifests "repo" }}{{ range $k, $v := . }}{{ $k }}: {{ $v }}{{ end }}{{ end }}`,
		`{{ chunk 2 (until 5) | toJson }}{{ dig "nested" "deep" "x" "d" .ConfigData }}`,
		`{{ semverCompare "^1.2" "1.3.0" }}{{ urlParse .Manifests.repo | toYaml }}`,
		`{{ eq .Manifests.type "kustomize" | ternary 1 2 }}{{ seq 1 2 9 }}{{ until 3 }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, content := range []controlplane.ContentType{controlplane.ContentYAML, controlplane.ContentJSON, controlplane.ContentEnv} {
			p, err := Parse(source(content, text))
			if err != nil {
				return
			}
			in := input()
			limits := Limits{Output: 1 << 16, Work: 1 << 18}
			first, err1 := p.Execute(in, limits)
			second, err2 := p.Execute(in, limits)
			if !bytes.Equal(first, second) || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
				t.Errorf("%q, %v, then %q, %v", first, err1, second, err2)
			}
			if diff := cmp.Diff(input(), in); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
			if len(first) > limits.Output {
				t.Errorf("%d bytes of output", len(first))
			}
		}
	})
}
