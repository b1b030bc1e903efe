package agent

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landfall-hub/landfall/agent/watch"
)

const page = "../docs/agent.md"

// document returns docs/agent.md and its blocks of YAML.
func document(t *testing.T) (text string, blocks []string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 2 {
		t.Fatalf("%s has %d blocks of YAML; a role and the settings are two", page, len(blocks))
	}
	return string(raw), blocks
}

// The role in the document lets the agent look at what it watches, and at
// nothing else.
func TestDocumentedRole(t *testing.T) {
	_, blocks := document(t)
	var role struct {
		Rules []struct {
			APIGroups, Resources, Verbs []string
		}
	}
	if err := yaml.Unmarshal([]byte(blocks[0]), &role); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, rule := range role.Rules {
		if diff := cmp.Diff([]string{"list", "watch"}, rule.Verbs); diff != "" {
			t.Errorf("verbs (-want +got):\n%s", diff)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				got = append(got, group+"/"+resource)
			}
		}
	}
	for _, k := range watch.DefaultKinds() {
		want = append(want, k.Group+"/"+k.Resource)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The settings in the document are all there are, with their defaults, and each
// flag is in its table and in the help.
func TestDocumentedSettings(t *testing.T) {
	text, blocks := document(t)
	got, err := program.Load("test", []string{"--config", write(t, "agent.yaml", blocks[1])}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Cluster = ClusterConfig{Name: "drone-07", Memberships: []MembershipConfig{}, Labels: map[string]string{}}
	want.Hub.URL, want.ArgoCD.Destinations = "https://hub.example", []DestinationConfig{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the defaults (-want +got):\n%s", diff)
	}
	var keys, documented map[string]any
	for from, into := range map[string]*map[string]any{wholeFile: &keys, blocks[1]: &documented} {
		if err := yaml.Unmarshal([]byte(from), into); err != nil {
			t.Fatal(err)
		}
	}
	for name, below := range keys {
		if m, ok := below.(map[string]any); ok {
			for key := range m {
				if _, ok := documented[name].(map[string]any)[key]; !ok {
					t.Errorf("%s.%s is not documented", name, key)
				}
			}
		}
	}
	for _, name := range flagNames(t) {
		variable := "LANDFALL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if !strings.Contains(text, "`--"+name) || !strings.Contains(text, "`"+variable+"`") {
			t.Errorf("--%s or %s is not documented", name, variable)
		}
		if !strings.Contains(usage, "--"+name) {
			t.Errorf("--%s is not in the help", name)
		}
	}
}

func flagNames(t *testing.T) []string {
	t.Helper()
	var c Config
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	c.flags(set)
	var names []string
	set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// documentedMetrics fails for metrics that the document does not name.
func documentedMetrics(t *testing.T, exposition string) {
	t.Helper()
	text, _ := document(t)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (landfall_\w+)`).FindAllStringSubmatch(exposition, -1) {
		if !strings.Contains(text, m[1]) {
			t.Errorf("%s is not documented", m[1])
		}
	}
}
