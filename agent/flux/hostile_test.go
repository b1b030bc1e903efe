package flux

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landfall-hub/landfall/agent/object"
	"github.com/landfall-hub/landfall/schema"
)

// A member of a type that nobody knows makes the status unknown, never green.
func TestWrongTypes(t *testing.T) {
	for name, c := range map[string]struct {
		path  []string
		value any
	}{
		"spec":               {[]string{"spec"}, "text"},
		"suspend":            {[]string{"spec", "suspend"}, "false"},
		"path":               {[]string{"spec", "path"}, int64(1)},
		"status":             {[]string{"status"}, []any{}},
		"conditions":         {[]string{"status", "conditions"}, map[string]any{}},
		"condition":          {[]string{"status", "conditions"}, []any{"Ready"}},
		"condition status":   {[]string{"status", "conditions"}, []any{map[string]any{"type": "Ready", "status": true}}},
		"condition time":     {[]string{"status", "conditions"}, []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "today"}}},
		"generation":         {[]string{"metadata", "generation"}, "1"},
		"half a generation":  {[]string{"metadata", "generation"}, 1.5},
		"observed":           {[]string{"status", "observedGeneration"}, "1"},
		"attempted":          {[]string{"status", "lastAttemptedRevision"}, []any{}},
		"applied":            {[]string{"status", "lastAppliedRevision"}, int64(7)},
		"origin":             {[]string{"status", "lastAppliedOriginRevision"}, false},
		"labels":             {[]string{"metadata", "labels"}, "a=b"},
		"inventory":          {[]string{"status", "inventory"}, "none"},
		"inventory entries":  {[]string{"status", "inventory", "entries"}, "none"},
		"a control sequence": {[]string{"status", "lastAppliedRevision"}, "main\x1b[2J"},
		"an endless text":    {[]string{"status", "lastAttemptedRevision"}, strings.Repeat("a", 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/kustomization-good")
			set(obj, c.value, c.path...)
			r, err := Kustomization(obj, loadSource(t, "samples/gitrepository-repo", ""))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != schema.StatusUnknown || r.Reason == "" || r.Message == "" {
				t.Errorf("status = %s, reason %q, message %q; want unknown and why", r.Status, r.Reason, r.Message)
			}
			if err := sendable(r); err != nil {
				t.Errorf("the hub would refuse it: %v", err)
			}
		})
	}
}

func TestWrongTypesHelmRelease(t *testing.T) {
	for name, c := range map[string]struct {
		path  []string
		value any
	}{
		"history":        {[]string{"status", "history"}, "none"},
		"release":        {[]string{"status", "history"}, []any{"one"}},
		"release number": {[]string{"status", "history"}, []any{map[string]any{"status": "deployed", "version": "3", "chartVersion": "1"}}},
		"attempted":      {[]string{"status", "lastAttemptedRevision"}, int64(1)},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "made/helmrelease")
			set(obj, c.value, c.path...)
			r, err := HelmRelease(obj, Source{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != schema.StatusUnknown {
				t.Errorf("status = %s, want unknown", r.Status)
			}
		})
	}
}

func TestNotNamed(t *testing.T) {
	noName := load(t, "samples/kustomization-good")
	unset(noName, "metadata", "name")
	for name, obj := range map[string]*unstructured.Unstructured{
		"nil": nil, "empty": {}, "no name": noName, "another kind": load(t, "made/helmrelease"),
	} {
		if _, err := Kustomization(obj, Source{}); !errors.Is(err, object.ErrNotNamed) {
			t.Errorf("%s: error = %v, want ErrNotNamed", name, err)
		}
	}
	if _, err := HelmRelease(load(t, "samples/kustomization-good"), Source{}); !errors.Is(err, object.ErrNotNamed) {
		t.Errorf("error = %v, want ErrNotNamed", err)
	}
}

// Passwords in URLs stay on the cluster, in endpoints and in messages.
func TestNoUserInfo(t *testing.T) {
	git := load(t, "samples/gitrepository-repo")
	set(git, "https://robot:hunter2@git.example.com/org/repo.git", "spec", "url")
	set(git, []any{map[string]any{
		"type": "FetchFailed", "status": "True", "message": "unable to clone 'https://robot:hunter2@git.example.com/org/repo.git': denied",
	}}, "status", "conditions")
	source, err := ReadSource(git)
	if err != nil {
		t.Fatal(err)
	}
	obj := load(t, "samples/kustomization-good")
	set(obj, []any{map[string]any{
		"type": "Ready", "status": "False", "message": "pulling https://robot:hunter2@git.example.com/x failed",
	}}, "status", "conditions")
	r, err := Kustomization(obj, source)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "hunter2") {
		t.Errorf("a password leaves the cluster: %s", raw)
	}
}

func TestMessageIsCut(t *testing.T) {
	obj := load(t, "samples/kustomization-good")
	says(obj, [3]string{"Ready", "False", "BuildFailed"})
	set(obj, []any{map[string]any{"type": "Ready", "status": "False", "message": "a" + strings.Repeat("é", schema.MaxMessage)}}, "status", "conditions")
	r, err := Kustomization(obj, Source{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "a" + strings.Repeat("é", (schema.MaxMessage-1)/2); r.Message != want {
		t.Errorf("the message has %d bytes and ends in %q", len(r.Message), r.Message[len(r.Message)-4:])
	}
}

// What moves on every reconcile is no change.
func TestMovingTimestamps(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")
		obj := load(t, name)
		if obj.GetKind() != KindKustomization && obj.GetKind() != KindHelmRelease {
			continue
		}
		read++
		was := reading(t, obj)
		set(obj, "2026-12-24T18:00:00Z", "status", "lastHandledReconcileAt")
		set(obj, "2026-12-24T18:00:00Z", "status", "lastHandledForceAt")
		set(obj, map[string]any{"reconcile.fluxcd.io/requestedAt": "2026-12-24T18:00:00Z"}, "metadata", "annotations")
		set(obj, "999999", "metadata", "resourceVersion")
		set(obj, []any{map[string]any{"manager": "kustomize-controller", "time": "2026-12-24T18:00:00Z"}}, "metadata", "managedFields")
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			c.(map[string]any)["lastTransitionTime"] = "2026-12-24T18:00:00Z"
		}
		if conditions != nil {
			set(obj, conditions, "status", "conditions")
		}
		history, _, _ := unstructured.NestedSlice(obj.Object, "status", "history")
		for _, h := range history {
			h.(map[string]any)["lastReconciled"] = "2026-12-24T18:00:00Z"
			h.(map[string]any)["totalReconciliations"] = int64(77)
		}
		if history != nil {
			set(obj, history, "status", "history")
		}
		if now := reading(t, obj); now.Digest() != was.Digest() {
			t.Errorf("%s: the digest changes with the time", name)
		}
	}
	if read < 14 {
		t.Errorf("only %d objects were read", read)
	}
}

func reading(t testing.TB, obj *unstructured.Unstructured) *schema.Reconciler {
	t.Helper()
	read := Kustomization
	if obj.GetKind() == KindHelmRelease {
		read = HelmRelease
	}
	r, err := read(obj, Source{})
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// FuzzKustomization reads random JSON, and real objects of which random members
// were replaced (a seed that is not 0).
func FuzzKustomization(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	source, err := json.Marshal(load(f, "made/ocirepository").Object)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		obj := load(f, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml"))
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			f.Fatal(err)
		}
		for seed := range uint64(50) {
			f.Add(raw, source, seed)
		}
	}
	f.Fuzz(func(t *testing.T, raw, rawSource []byte, seed uint64) {
		obj, sourceObj := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if json.Unmarshal(raw, &obj.Object) != nil || json.Unmarshal(rawSource, &sourceObj.Object) != nil || obj.Object == nil {
			return
		}
		if seed != 0 {
			random := rand.New(rand.NewPCG(seed, seed))
			obj.Object, _ = disturbed(obj.Object, random).(map[string]any)
			sourceObj.Object, _ = disturbed(sourceObj.Object, random).(map[string]any)
		}
		if obj.Object == nil {
			return
		}
		trimmedSource := sourceObj.DeepCopy()
		source, err := ReadSource(sourceObj)
		if err != nil && !errors.Is(err, object.ErrNotNamed) {
			t.Fatalf("reading a source failed as %v", err)
		}
		Trim(trimmedSource)
		if again, err := ReadSource(trimmedSource); again != source {
			t.Fatalf("of the trimmed source: %v, %+v; of the whole one: %+v", err, again, source)
		}
		obj.Object["metadata"] = named(obj.Object["metadata"])
		for kind, read := range map[string]func(*unstructured.Unstructured, Source) (schema.Reconciler, error){
			KindKustomization: Kustomization, KindHelmRelease: HelmRelease,
		} {
			obj.Object["kind"] = kind
			trimmed := obj.DeepCopy()
			r, err := read(obj, source.In(source))
			if err != nil {
				t.Fatalf("%s that has a name: %v", kind, err)
			}
			if err := sendable(r); err != nil {
				t.Fatalf("the hub would refuse %s: %v", kind, err)
			}
			if r.Status == schema.StatusSuccess && !isGreen(obj) {
				t.Fatalf("a false green: %v", obj.Object)
			}
			Trim(trimmed)
			rest, err := read(trimmed, source.In(source))
			if err != nil || digest(rest) != digest(r) {
				t.Fatalf("of the trimmed %s: %v, %+v; of the whole one: %+v", kind, err, rest, r)
			}
			if a, b := SourceRef(trimmed), SourceRef(obj); a != b {
				t.Fatalf("the source of the trimmed %s is %s, not %s", kind, a, b)
			}
			if !slices.Equal(Inventory(trimmed), Inventory(obj)) {
				t.Fatalf("the trimmed %s has other children", kind)
			}
			for _, child := range Inventory(obj) {
				if child == r.Ref() {
					t.Fatal("it is a child of its own")
				}
			}
		}
	})
}

// digest leaves out where something cannot be read: trimming moves places.
func digest(r schema.Reconciler) schema.Digest {
	if r.Reason == object.ReasonUnreadable {
		r.Message = ""
	}
	return r.Digest()
}

// isGreen says in other words than the reader's when a success is one.
func isGreen(obj *unstructured.Unstructured) bool {
	suspend, found, err := unstructured.NestedBool(obj.Object, "spec", "suspend")
	if err != nil || found && suspend {
		return false
	}
	seen := obj.Object["status"].(map[string]any)["observedGeneration"]
	generation := obj.Object["metadata"].(map[string]any)["generation"]
	if seen == nil || seen != generation {
		return false
	}
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// disturbed replaces a few members of a JSON value by others.
func disturbed(v any, random *rand.Rand) any {
	if random.IntN(40) == 0 {
		pool := []any{
			nil, true, false, "", "True", "False", "Unknown", "https://user:pass@host/repo", "\x00\x1b", strings.Repeat("x", 5000), 1.5, 2.0, -1.0,
			map[string]any{}, []any{}, []any{"a", nil}, map[string]any{"name": 3.0}, "main@sha1:9e04eced091a4b6b71e9a3bdf4e6972ad7573bd8",
		}
		return pool[random.IntN(len(pool))]
	}
	switch t := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(t)) {
			t[name] = disturbed(t[name], random)
		}
	case []any:
		for i := range t {
			t[i] = disturbed(t[i], random)
		}
	}
	return v
}

// named gives metadata a name and a namespace.
func named(v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	m["namespace"], m["name"] = "flux-system", "fuzzed"
	return m
}
