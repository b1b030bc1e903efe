package argocd

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
		"spec":              {[]string{"spec"}, "text"},
		"source":            {[]string{"spec", "source"}, "text"},
		"sources":           {[]string{"spec", "sources"}, map[string]any{}},
		"one of sources":    {[]string{"spec", "sources"}, []any{"text"}},
		"repository":        {[]string{"spec", "source", "repoURL"}, int64(1)},
		"hydrator":          {[]string{"spec", "sourceHydrator"}, true},
		"automated":         {[]string{"spec", "syncPolicy", "automated"}, true},
		"enabled":           {[]string{"spec", "syncPolicy", "automated", "enabled"}, "yes"},
		"destination":       {[]string{"spec", "destination"}, "here"},
		"status":            {[]string{"status"}, []any{}},
		"reconciledAt":      {[]string{"status", "reconciledAt"}, "yesterday"},
		"reconciled number": {[]string{"status", "reconciledAt"}, int64(1)},
		"conditions":        {[]string{"status", "conditions"}, map[string]any{"type": "ComparisonError"}},
		"condition":         {[]string{"status", "conditions"}, []any{"ComparisonError"}},
		"condition type":    {[]string{"status", "conditions"}, []any{map[string]any{"type": int64(1)}}},
		"sync":              {[]string{"status", "sync"}, "Synced"},
		"revision":          {[]string{"status", "sync", "revision"}, int64(508)},
		"revisions":         {[]string{"status", "sync", "revisions"}, "none"},
		"comparedTo":        {[]string{"status", "sync", "comparedTo"}, "main"},
		"health":            {[]string{"status", "health"}, "Healthy"},
		"operation":         {[]string{"status", "operationState"}, "Succeeded"},
		"dry run":           {[]string{"status", "operationState", "operation", "sync", "dryRun"}, "no"},
		"partial":           {[]string{"status", "operationState", "operation", "sync", "resources"}, "all"},
		"manifests":         {[]string{"status", "operationState", "operation", "sync", "manifests"}, "none"},
		"finished":          {[]string{"status", "operationState", "finishedAt"}, "now"},
		"history":           {[]string{"status", "history"}, "none"},
		"resources":         {[]string{"status", "resources"}, "none"},
		"resource":          {[]string{"status", "resources"}, []any{"none"}},
		"annotations":       {[]string{"metadata", "annotations"}, "none"},
		"escape sequence":   {[]string{"status", "sync", "revision"}, "main\x1b[2J"},
		"endless text":      {[]string{"status", "sync", "revision"}, strings.Repeat("a", 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			obj := load(t, "samples/application-good")
			if name == "revisions" { // they are read of several sources only
				obj = load(t, "made/multisource")
			}
			set(obj, c.value, c.path...)
			r, err := Application(obj, Tracking{})
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

func TestNotNamed(t *testing.T) {
	noNamespace := load(t, "samples/application-good")
	unset(noNamespace, "metadata", "namespace")
	other := load(t, "samples/application-good")
	set(other, "AppProject", "kind")
	for name, obj := range map[string]*unstructured.Unstructured{"nil": nil, "empty": {}, "no namespace": noNamespace, "another kind": other} {
		if _, err := Application(obj, Tracking{}); !errors.Is(err, object.ErrNotNamed) {
			t.Errorf("%s: error = %v, want ErrNotNamed", name, err)
		}
	}
}

// Passwords in URLs stay on the cluster, in endpoints and in messages.
func TestNoUserInfo(t *testing.T) {
	const secret = "https://robot:hunter2@git.example.com/org/repo.git"
	obj := load(t, "samples/application-badpath")
	set(obj, secret, "spec", "source", "repoURL")
	withCondition("ComparisonError", "fetching "+secret+": denied")(obj)
	r, err := Application(obj, Tracking{})
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

// What moves on every reconcile is no change.
func TestMovingTimestamps(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d objects: %v", len(files), err)
	}
	for _, file := range files {
		obj := load(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml"))
		was, err := Application(obj, Tracking{})
		if err != nil {
			t.Fatal(err)
		}
		const later = "2026-12-24T18:00:00Z"
		set(obj, later, "status", "reconciledAt")
		set(obj, later, "status", "observedAt")
		set(obj, later, "status", "health", "lastTransitionTime")
		set(obj, "999999", "metadata", "resourceVersion")
		set(obj, int64(9999), "metadata", "generation") // Argo CD's own writes move it
		if _, ok, _ := unstructured.NestedMap(obj.Object, "status", "operationState"); ok {
			set(obj, "2026-12-24T17:00:00Z", "status", "operationState", "finishedAt")
			set(obj, "2026-12-24T16:00:00Z", "status", "operationState", "startedAt")
		}
		now, err := Application(obj, Tracking{})
		if err != nil {
			t.Fatal(err)
		}
		if now.Digest() != was.Digest() {
			t.Errorf("%s: the digest changes with the time", file)
		}
	}
}

// FuzzApplication reads random JSON, and real objects of which random members
// were replaced (a seed that is not 0).
func FuzzApplication(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
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
			f.Add(raw, seed)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		obj := &unstructured.Unstructured{}
		if json.Unmarshal(raw, &obj.Object) != nil {
			return
		}
		if seed != 0 {
			random := rand.New(rand.NewPCG(seed, seed))
			obj.Object, _ = disturbed(obj.Object, random).(map[string]any)
		}
		if obj.Object == nil {
			return
		}
		metadata, ok := obj.Object["metadata"].(map[string]any)
		if !ok {
			metadata = map[string]any{}
		}
		metadata["namespace"], metadata["name"] = "argocd", "fuzzed"
		obj.Object["metadata"], obj.Object["kind"] = metadata, KindApplication
		trimmed, tracking := obj.DeepCopy(), Tracking{Namespace: "argocd", Label: "app.kubernetes.io/instance"}
		r, err := Application(obj, tracking)
		if err != nil {
			t.Fatalf("an Application that has a name: %v", err)
		}
		if err := sendable(r); err != nil {
			t.Fatalf("the hub would refuse it: %v", err)
		}
		if r.Status == schema.StatusSuccess && !isGreen(obj) {
			t.Fatalf("a false green: %v", obj.Object)
		}
		Trim(trimmed)
		rest, err := Application(trimmed, tracking)
		if err != nil || digest(rest) != digest(r) {
			t.Fatalf("of the trimmed one: %v, %+v; of the whole one: %+v", err, rest, r)
		}
		if ReadDestination(trimmed) != ReadDestination(obj) || !slices.Equal(Inventory(trimmed), Inventory(obj)) {
			t.Fatal("the trimmed one has another destination or other children")
		}
		for _, child := range Inventory(obj) {
			if child == r.Ref() {
				t.Fatal("it is a child of its own")
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

// isGreen says in other words than the reader's when a success can be one.
func isGreen(obj *unstructured.Unstructured) bool {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(obj.Object, path...)
		return s
	}
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		if t, _, _ := unstructured.NestedString(c.(map[string]any), "type"); t == "ComparisonError" || t == "InvalidSpecError" || t == "UnknownError" {
			return false
		}
	}
	sync, health, phase := text("status", "sync", "status"), text("status", "health", "status"), text("status", "operationState", "phase")
	return text("status", "reconciledAt") != "" && phase != "Running" && phase != "Terminating" &&
		(sync == "Synced" && (health == "Healthy" || health == "") || sync == "OutOfSync" && health != "Degraded" && health != "Progressing")
}

// disturbed replaces a few members of a JSON value by others.
func disturbed(v any, random *rand.Rand) any {
	if random.IntN(60) == 0 {
		pool := []any{
			nil, true, false, "", "Synced", "OutOfSync", "Healthy", "Missing", "Failed", "2026-11-20T09:00:00Z", "https://user:pass@host/repo",
			"\x00\x1b", strings.Repeat("x", 5000), 1.5, 2.0, map[string]any{}, []any{}, []any{"a", nil}, []any{map[string]any{"repoURL": "x"}},
			"508a11a06f010dd22052dcca9f4ed6fe3664c747",
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
