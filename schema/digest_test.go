package schema_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// full is a reconciler with something in every member.
func full() schema.Reconciler {
	observed := true
	return schema.Reconciler{
		Kind: "Kustomization", Namespace: "flux-system", Name: "drone", Cluster: "drone-07",
		Sources: []schema.Source{{Type: schema.SourceGit, URL: "https://git.example/org/platform-gitops", Ref: "dev", Path: "./drone"}},
		Status:  schema.StatusFailure, Reason: "BuildFailed", Message: "kustomize build failed: né",
		Attempted: []string{"dev@sha1:0123456789012345678901234567890123456789"}, Applied: []string{"dev@sha1:9876543210987654321098765432109876543210"},
		Origin: []string{"main"}, SourceRevision: "dev@sha1:0123456789012345678901234567890123456789", SourceError: "timeout",
		GenerationObserved: &observed, Health: "Degraded", Suspended: true, Drifted: true,
		Since: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), ObservedAt: time.Date(2026, 11, 20, 9, 1, 0, 0, time.UTC),
		Owner: &schema.ObjectRef{Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system"},
	}
}

// minimal is the reconciler of the API document's example.
func minimal() schema.Reconciler {
	return schema.Reconciler{Kind: "Kustomization", Namespace: "flux-system", Name: "drone", Status: schema.StatusSuccess, Sources: []schema.Source{}}
}

// The API document quotes these.
const (
	goldenMinimal = "114bce5eb2312ec2e3ad36ea2874a74a"
	goldenFull    = "8ea29f72994865933befd0baaf2a0fa1"
)

func TestDigestGolden(t *testing.T) {
	a, b := minimal(), full()
	for want, r := range map[string]*schema.Reconciler{goldenMinimal: &a, goldenFull: &b} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Digest().String()
		t.Logf("%s is the digest of %s", got, text)
		if got != want {
			t.Errorf("%s: want %s, got %s", r.Ref(), want, got)
		}
	}
}

// TestDigestByTheDocument writes the minimal reconciler out by hand, as the
// comment of Digest says.
func TestDigestByTheDocument(t *testing.T) {
	const doc = "" +
		"0000000d" + "4b7573746f6d697a6174696f6e" + // kind: Kustomization
		"0000000b" + "666c75782d73797374656d" + // namespace: flux-system
		"00000005" + "64726f6e65" + // name: drone
		"00000000" + // cluster
		"00000000" + // sources: none
		"00000007" + "73756363657373" + // status: success
		"00000000" + "00000000" + // reason, message
		"00000000" + "00000000" + "00000000" + // attempted, applied, origin
		"00000000" + "00000000" + // source_revision, source_error
		"02" + // generation_observed: absent
		"00000000" + // health
		"00" + "00" + // suspended, drifted
		"00" // owner: absent
	bytes, err := hex.DecodeString(doc)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(bytes)
	r := minimal()
	if got, want := r.Digest().String(), hex.EncodeToString(sum[:16]); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestDigestSeesEveryField walks the message by reflection, so that a new
// member cannot be forgotten.
func TestDigestSeesEveryField(t *testing.T) {
	blind := map[string]bool{"Since": true, "ObservedAt": true}
	base := full()
	check := func(name string, r *schema.Reconciler, expectChange bool) {
		t.Helper()
		if changed := r.Digest() != base.Digest(); changed != expectChange {
			t.Errorf("%s: the digest changed: %v, it should: %v", name, changed, expectChange)
		}
	}
	typ := reflect.TypeFor[schema.Reconciler]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		changed := full()
		alter(t, name, reflect.ValueOf(&changed).Elem().Field(i))
		check(name+" changed", &changed, !blind[name])
		empty := full()
		reflect.ValueOf(&empty).Elem().Field(i).SetZero()
		check(name+" absent", &empty, !blind[name])
	}
	for _, part := range []string{"Type", "URL", "Ref", "Path"} {
		r := full()
		alter(t, part, reflect.ValueOf(&r.Sources[0]).Elem().FieldByName(part))
		check("source "+part, &r, true)
	}
	for _, part := range []string{"Kind", "Namespace", "Name"} {
		r := full()
		alter(t, part, reflect.ValueOf(r.Owner).Elem().FieldByName(part))
		check("owner "+part, &r, true)
	}
	if n := reflect.TypeFor[schema.Source]().NumField(); n != 4 {
		t.Errorf("a source has %d members, four are tested", n)
	}
	if n := reflect.TypeFor[schema.ObjectRef]().NumField(); n != 3 {
		t.Errorf("an owner has %d members, three are tested", n)
	}
	no := false
	r := full()
	r.GenerationObserved = &no
	check("generation not observed", &r, true)
}

// alter changes a value to another one of its kind.
func alter(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *string:
		*x += "x"
	case *schema.Status:
		*x = schema.StatusPending
	case *schema.SourceType:
		*x = schema.SourceOCI
	case *bool:
		*x = !*x
	case **bool:
		b := !**x
		*x = &b
	case *[]string:
		*x = append([]string{"more"}, *x...)
	case *[]schema.Source:
		*x = append(*x, (*x)[0])
	case *time.Time:
		*x = x.Add(time.Hour)
	case **schema.ObjectRef:
		o := **x
		o.Kind += "x"
		*x = &o
	default:
		t.Fatalf("%s is a %s: say how to change it", name, v.Type())
	}
}

// TestDigestKeepsTextsApart: moving a border between texts changes the digest.
func TestDigestKeepsTextsApart(t *testing.T) {
	a, b := minimal(), minimal()
	a.Reason, a.Message = "ab", "c"
	b.Reason, b.Message = "a", "bc"
	if a.Digest() == b.Digest() {
		t.Error("ab, c and a, bc are two states")
	}
	a, b = minimal(), minimal()
	a.Attempted, b.Applied = []string{"x"}, []string{"x"}
	if a.Digest() == b.Digest() {
		t.Error("attempted is not applied")
	}
}

func TestDigestOfASet(t *testing.T) {
	var members []schema.Digest
	for i := range 50 {
		r := full()
		r.Name = string(rune('a' + i))
		members = append(members, r.Digest())
	}
	var whole schema.Digest
	for _, m := range members {
		whole.Toggle(m)
	}
	r := rand.New(rand.NewPCG(1, 2)) // a test repeats itself
	for range 20 {
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		var set schema.Digest
		for _, m := range members {
			set.Toggle(m)
		}
		if set != whole {
			t.Fatal("the order of a set does not matter")
		}
		set.Toggle(members[0])
		if set == whole {
			t.Fatal("one that is gone is seen")
		}
		set.Toggle(members[0])
		if set != whole {
			t.Fatal("one that is back is as before")
		}
	}
	for _, m := range members {
		whole.Toggle(m)
	}
	if whole != (schema.Digest{}) || whole.String() != "00000000000000000000000000000000" {
		t.Errorf("nothing is zeroes, got %s", whole)
	}
}

func TestParseDigest(t *testing.T) {
	r := full()
	d := r.Digest()
	if got, ok := schema.ParseDigest(d.String()); !ok || got != d {
		t.Errorf("written and read again: %s, %v", got, ok)
	}
	for _, in := range []string{"", "00", d.String() + "00", "zz" + d.String()[2:], d.String()[1:]} {
		if _, ok := schema.ParseDigest(in); ok {
			t.Errorf("%q is no digest", in)
		}
	}
}
