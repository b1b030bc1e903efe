package agent

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/landfall-hub/landfall/agent/host"
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
	if len(blocks) != 3 {
		t.Fatalf("%s has %d blocks of YAML; a role, the settings and a host's are three", page, len(blocks))
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
	got, err := configuration.Load("test", []string{"--config", write(t, "agent.yaml", blocks[1])}, environment(nil))
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

// A host's settings in the document are all there are, with their defaults.
func TestDocumentedHost(t *testing.T) {
	_, blocks := document(t)
	got, err := configuration.Load("test", []string{"--config", write(t, "agent.yaml", least+blocks[2])}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Host.Validate(); err != nil {
		t.Fatal(err)
	}
	var documented struct{ Host map[string]any }
	if err := yaml.Unmarshal([]byte(blocks[2]), &documented); err != nil {
		t.Fatal(err)
	}
	folder, _ := documented.Host["folders"].([]any)[0].(map[string]any)
	auth, _ := folder["auth"].(map[string]any)
	apply, _ := folder["apply"].(map[string]any)
	for of, keys := range map[reflect.Type]map[string]any{
		reflect.TypeFor[host.Config](): documented.Host, reflect.TypeFor[host.FolderConfig](): folder,
		reflect.TypeFor[host.AuthConfig](): auth, reflect.TypeFor[host.ApplyConfig](): apply,
	} {
		for i := range of.NumField() {
			if key := of.Field(i).Tag.Get("yaml"); keys[key] == nil {
				t.Errorf("%s of %s is not documented", key, of)
			}
		}
	}
	if f := got.Host.Folders[0]; got.Host.Parallel != host.DefaultParallel || f.Interval != host.DefaultInterval || f.Apply.Timeout != host.DefaultTimeout {
		t.Errorf("the documented defaults are others: %+v", got.Host)
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
