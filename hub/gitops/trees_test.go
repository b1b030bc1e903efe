package gitops

import (
	"maps"
	"testing"
)

// Which folders lead nowhere else: only of these, the same tree is the same thing
// to who reads it.
func TestSelfContained(t *testing.T) {
	base := map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": "a: 1\n", "apps/kustomization.yaml": "resources: [a.yaml]\n", "apps/a.yaml": "a: 1\n"}
	cases := map[string]struct {
		reason string
		folder string
		files  map[string]string
		want   bool
	}{
		"Plain":            {"Manifests and a kustomization of its own.", "apps", nil, true},
		"Root":             {"The whole repository leads nowhere else.", "", nil, true},
		"Below":            {"What is below is inside.", "apps", map[string]string{"apps/kustomization.yaml": "resources: [sub, ./sub/../a.yaml]\n", "apps/sub/kustomization.yaml": "resources: [../a.yaml]\n"}, true},
		"BelowAsked":       {"The same file climbs out of the folder below.", "apps/sub", map[string]string{"apps/sub/kustomization.yaml": "resources: [../a.yaml]\n"}, false},
		"Base":             {"The commonest case: an overlay over a base.", "apps", map[string]string{"apps/kustomization.yaml": "resources:\n- ../base\n"}, false},
		"BaseFromDeep":     {"From a folder below.", "apps", map[string]string{"apps/sub/deep/kustomization.yaml": "resources: ['../../../base']\n"}, false},
		"BaseWithinRoot":   {"For who reads the root it is inside.", "", map[string]string{"apps/kustomization.yaml": "resources: [../base]\n"}, true},
		"OtherField":       {"Whatever field it is in.", "apps", map[string]string{"apps/kustomization.yaml": "patches: [{path: ../base/p.yaml}]\n"}, false},
		"Generator":        {"Behind an equals sign.", "apps", map[string]string{"apps/kustomization.yaml": "configMapGenerator: [{name: x, files: [key=../base/a.yaml]}]\n"}, false},
		"Text":             {"In a text that is a document of its own.", "apps", map[string]string{"apps/kustomization.yaml": "x: |\n  y: {path: \"../base\"}\n"}, false},
		"Escaped":          {"However it is written.", "apps", map[string]string{"apps/kustomization.yaml": "resources: [\"\\x2e\\x2e/base\"]\n"}, false},
		"Parent":           {"The parent itself.", "apps", map[string]string{"apps/kustomization.yaml": "resources: ['..']\n"}, false},
		"OtherName":        {"The kustomization's other names.", "apps", map[string]string{"apps/kustomization.yaml": "", "apps/Kustomization": "resources: [../base]\n"}, false},
		"YML":              {"The third of them.", "apps", map[string]string{"apps/kustomization.yaml": "", "apps/kustomization.yml": "resources: [../base]\n"}, false},
		"SecondDocument":   {"In a second document.", "apps", map[string]string{"apps/kustomization.yaml": "a: 1\n---\nresources: [../base]\n"}, false},
		"Remote":           {"A remote base.", "apps", map[string]string{"apps/kustomization.yaml": "resources: ['https://git.example/org/base?ref=main']\n"}, false},
		"RemoteShort":      {"Spelled another way.", "apps", map[string]string{"apps/kustomization.yaml": "resources: [github.com/org/base]\n"}, false},
		"RemoteSSH":        {"And another.", "apps", map[string]string{"apps/kustomization.yaml": "resources: ['git@git.example:org/base.git']\n"}, false},
		"Plugins":          {"Files of generators may name anything.", "apps", map[string]string{"apps/kustomization.yaml": "generators: [g.yaml]\n"}, false},
		"Patch":            {"The path of a JSON patch is no place in the repository.", "apps", map[string]string{"apps/kustomization.yaml": "patches: [{patch: '[{\"op\": \"remove\", \"path\": \"/spec/x\"}]'}]\n"}, true},
		"Comment":          {"A comment reads nothing.", "apps", map[string]string{"apps/kustomization.yaml": "# ../base\nresources: [a.yaml]\n"}, true},
		"Broken":           {"What cannot be read may be anything.", "apps", map[string]string{"apps/kustomization.yaml": "resources: [\n"}, false},
		"Link":             {"A link.", "apps", map[string]string{"apps/sub/x": "-> ../../base"}, false},
		"LinkInside":       {"Also one that stays inside: nobody follows it here.", "apps", map[string]string{"apps/x": "-> a.yaml"}, false},
		"LinkBeside":       {"One in another folder is none of ours.", "apps", map[string]string{"base/x": "-> a.yaml"}, true},
		"Chart":            {"A chart gets values from elsewhere.", "apps", map[string]string{"apps/Chart.yaml": "name: x\n"}, false},
		"ChartBelow":       {"One below is rendered with what is inside.", "apps", map[string]string{"apps/charts/x/Chart.yaml": "name: x\n"}, true},
		"Jsonnet":          {"Jsonnet imports.", "apps", map[string]string{"apps/x.jsonnet": "{}"}, false},
		"NotThere":         {"A folder that is not there.", "none", nil, false},
		"File":             {"A file is no folder.", "apps/a.yaml", nil, false},
		"ThroughALink":     {"A folder behind a link.", "link", map[string]string{"link": "-> apps"}, false},
		"BelowALink":       {"Or below one.", "link/sub", map[string]string{"link": "-> apps", "apps/sub/a": "1"}, false},
		"ManifestWithDots": {"A manifest is applied as it is.", "apps", map[string]string{"apps/a.yaml": "args: [../x]\n"}, true},
	}
	s := newStream()
	numbers := map[string]int{}
	for name, c := range cases {
		files := maps.Clone(base)
		maps.Copy(files, c.files)
		maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
		numbers[name] = s.commit(nil, files)
		s.branch(name, numbers[name])
	}
	bare := t.TempDir()
	ids := s.into(t, bare)
	m := newMirrors(t, t.TempDir(), Repository{URL: bare})
	if wrong := fetchAll(t, m); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	g := m.Graph(m.all[0].mirror.repo)
	for name, c := range cases {
		for range 2 { // the second time from what is kept
			if got := g.SelfContained(ids[numbers[name]], c.folder); got != c.want {
				t.Errorf("%s: %s It is %t", name, c.reason, got)
			}
		}
	}
}

// Every folder must be the same, whichever comes first; what cannot be told is
// not the same.
func TestSameTrees(t *testing.T) {
	s := newStream()
	first := s.commit(nil, map[string]string{"a/x": "1", "b/x": "1", "link": "-> a", "moved": "-> a", ".sourceignore": "1"})
	second := s.commit([]int{first}, map[string]string{"b/x": "2", "moved": "-> b", ".sourceignore": "2", "new/x": "1"})
	s.branch("main", second)
	bare := t.TempDir()
	ids := s.into(t, bare)
	m := newMirrors(t, t.TempDir(), Repository{URL: bare})
	fetchAll(t, m)
	g := m.Graph(m.all[0].mirror.repo)
	cases := map[string]struct {
		reason   string
		folders  []string
		same, ok bool
	}{
		"Same":      {"It did not change.", []string{"a"}, true, true},
		"Other":     {"It changed.", []string{"b"}, false, true},
		"OtherLast": {"One of two changed.", []string{"a", "b"}, false, true},
		"OtherOnce": {"In the other order.", []string{"b", "a"}, false, true},
		"Root":      {"The root changes with everything.", []string{""}, false, true},
		"File":      {"A file is compared too.", []string{".sourceignore"}, false, true},
		"SameFile":  {"One that did not change.", []string{"a/x"}, true, true},
		"Nowhere":   {"Nothing at both is the same.", []string{"none", "none/deep", "a/x/deep"}, true, true},
		"Came":      {"What came is a change.", []string{"new"}, false, true},
		"Link":      {"Of a link, where it leads is compared.", []string{"link"}, true, true},
		"BelowLink": {"Also for what is behind it.", []string{"link/x", "link/none"}, true, true},
		"OtherLink": {"One that leads elsewhere now.", []string{"moved/x"}, false, true},
		"Climbs":    {"A path that climbs out.", []string{"../a"}, false, false},
		"Unclean":   {"A path as people write it.", []string{"./a/"}, true, true},
	}
	for name, c := range cases {
		if same, ok := g.SameTrees(ids[first], ids[second], c.folders); same != c.same || ok != c.ok {
			t.Errorf("%s: %s Got %t, %t", name, c.reason, same, ok)
		}
	}
	if same, ok := g.SameTrees(ids[first], "nonsense", []string{"a"}); same || ok {
		t.Errorf("no commit: %t, %t", same, ok)
	}
}
