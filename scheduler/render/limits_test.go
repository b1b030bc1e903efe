package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/scheduler/controlplane"
)

// few limits are enough to see that there are some.
var few = Limits{Work: 4 << 20}

// Each of these would take minutes, gigabytes or the process.
func TestLimits(t *testing.T) {
	for name, text := range map[string]string{
		"until":                `{{ until 1000000000 }}`,
		"until below zero":     `{{ until -1000000000 }}`,
		"untilStep":            `{{ untilStep 0 1000000000 1 }}`,
		"seq":                  `{{ seq 1000000000 }}`,
		"repeat":               `{{ repeat 1000000000 "a" }}`,
		"repeat twice":         `{{ $x := repeat 100000 "0123456789" }}{{ repeat 1000000 $x }}`,
		"range over a number":  `{{ range 1000000000000 }}{{ end }}`,
		"range over numbers":   `{{ range until 10000 }}{{ range until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}{{ end }}`,
		"output in a loop":     `{{ range 10000000 }}0123456789{{ end }}`,
		"much in each turn":    `{{ range 100000 }}{{ $x := 1 }}` + strings.Repeat(`{{ $x = 2 }}`, 10000) + `{{ end }}`,
		"doubling text":        `{{ $x := "ab" }}{{ range 1000 }}{{ $x = cat $x $x }}{{ end }}`,
		"doubling list":        `{{ $x := list 1 }}{{ range 1000 }}{{ $x = concat $x $x }}{{ end }}`,
		"doubling map":         `{{ $x := dict "a" 1 }}{{ range 1000 }}{{ $x = dict "a" $x "b" $x }}{{ end }}`,
		"growing from behind":  `{{ $e := dict }}{{ $x := $e }}{{ range 15 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $_ := set $e "k" (repeat 100000 "a") }}{{ $x }}`,
		"holds itself":         `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x }}`,
		"holds itself, yaml":   `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toYaml $x }}`,
		"holds itself, eq":     `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ eq $x $x }}`,
		"holds itself, piped":  `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x | eq 1 }}`,
		"holds itself, range":  `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ range $x }}{{ end }}`,
		"holds itself, html":   `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ html $x }}`,
		"merged with itself":   `{{ $x := dict }}{{ $y := dict "x" $x }}{{ $_ := merge $x $y $y }}{{ $_ := merge $x $y $y }}{{ $x }}{{ $_ := set $x "x" $x }}{{ merge $x $x }}`,
		"calls itself":         `{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}`,
		"calls itself twice":   `{{ define "x" }}{{ if lt . 60 }}{{ template "x" add1 . }}{{ template "x" add1 . }}{{ end }}{{ end }}{{ template "x" 0 }}`,
		"indent":               `{{ indent 1000000000 "a" }}`,
		"indent many lines":    `{{ $x := repeat 100000 "\n" }}{{ indent 100000 $x }}`,
		"nindent":              `{{ nindent 1000000000 "a" }}`,
		"replace nothing":      `{{ $x := repeat 100000 "a" }}{{ replace "" $x $x }}`,
		"join":                 `{{ $x := repeat 100000 "a" }}{{ join $x (until 10000) }}`,
		"printf width":         `{{ range 100000 }}{{ $x := printf "%1000000d" 1 }}{{ end }}`,
		"printf widths":        `{{ printf (repeat 10000 "%1000000d") 1 }}`,
		"printf star":          `{{ printf (repeat 1000 "%[1]*d") 1000000 }}`,
		"wrapWith":             `{{ $x := repeat 100000 "a" }}{{ wrapWith 1 $x $x }}`,
		"split into letters":   `{{ $x := split "" (repeat 1000000 "a") }}`,
		"large expression":     `{{ regexMatch (repeat 20 "(a{30}){30}") "a" }}`,
		"slow expression":      `{{ regexMatch "(x{50}){50}(a|b|c){100}y" (repeat 1000000 "ab") }}`,
		"replacing with all":   `{{ regexReplaceAll "(.*)" (repeat 100000 "a") (repeat 10000 "$1") }}`,
		"finding every letter": `{{ $x := regexFindAll "a" (repeat 1000000 "a") -1 }}`,
		"uniq":                 `{{ $x := uniq (until 10000) }}`,
		"escaping escapes":     `{{ repeat 100000 "&" | html | html | html | html | html | html | html | html | html }}`,
		"comparing":            `{{ $x := repeat 1000000 "a" }}{{ $y := print $x "" }}{{ range 1000000 }}{{ if eq $x $y }}{{ end }}{{ end }}`,
		"sorting":              `{{ $x := dict }}{{ range $i := until 10000 }}{{ $_ := set $x (print $i) 1 }}{{ end }}{{ range 10000 }}{{ range $x }}{{ break }}{{ end }}{{ end }}`,
		"many arguments":       `{{ mulf 1.7 ` + strings.Repeat("1.7 ", 100000) + `}}`,
		"nested loops":         "{{ repeat 5 `{{ range until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}` }}",
		"nested doubling":      "{{ define \"x\" }}{{ end }}{{ `{{ $x := \"{{ . }}\" }}{{ range 100 }}{{ $x = cat $x $x }}{{ end }}` }}",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(source(controlplane.ContentEnv, text))
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Execute(input(), few)
			if !errors.Is(err, ErrLimit) {
				t.Fatalf("got %v, want a limit", shortened(err))
			}
			if !strings.Contains(err.Error(), "templates/t.yaml:10") || !strings.Contains(err.Error(), "over its limit") {
				t.Errorf("%q does not say where and why", shortened(err))
			}
			// Nothing of it is left for the next.
			if _, err := p.Execute(input(), few); !errors.Is(err, ErrLimit) {
				t.Errorf("the second time: %v", shortened(err))
			}
		})
	}
}

func shortened(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()[:min(len(err.Error()), 300)]
}

// What a usual template does is far from the limits.
func TestUsualWork(t *testing.T) {
	for name, text := range map[string]string{
		"a config of a thousand keys": `{{ $x := dict }}{{ range $i := until 1000 }}{{ $_ := set $x (printf "KEY_%d" $i) (repeat 50 "v") }}{{ end }}`,
		"loops":                       `{{ range $i := until 100 }}{{ range $j := until 100 }}{{ if eq $i $j }}{{ $i }} {{ end }}{{ end }}{{ end }}`,
		"a large file":                `{{ range $i := until 5000 }}line {{ $i }} with some text and {{ $.Namespace | upper | quote }}` + "\n" + `{{ end }}`,
		"expressions":                 `{{ range until 50 }}{{ regexReplaceAll "[^a-z0-9-]+" (print $.Workload "/" $.Namespace) "-" }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(source(controlplane.ContentEnv, text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Execute(input(), Limits{}); err != nil {
				t.Errorf("%v", shortened(err))
			}
		})
	}
}

func TestOwnLimits(t *testing.T) {
	p, err := Parse(source(controlplane.ContentEnv, "0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Execute(input(), Limits{Output: 10}); !errors.Is(err, ErrLimit) {
		t.Errorf("eleven bytes, with the line's end, in ten: %v", err)
	}
	if text, err := p.Execute(input(), Limits{Output: 11}); err != nil || len(text) != 11 {
		t.Errorf("got %q, %v", text, err)
	}
}

// Two templates of one file share its limit.
func TestOutputIsOfTheFile(t *testing.T) {
	p, err := Parse(source(controlplane.ContentYAML, "a: 1", "b: {{ repeat 50 \"x\" }}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Execute(input(), Limits{Output: 55}); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v", err)
	}
}
