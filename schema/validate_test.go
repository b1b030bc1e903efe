package schema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

// delta is a small valid report.
func delta() schema.Report {
	return schema.Report{
		Epoch: 7, Sequence: 42, Mode: schema.ModeDelta, ObservedAt: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		Reconcilers: []schema.Reconciler{full()},
		Removed:     []schema.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: "gone"}},
	}
}

func snapshot() schema.Report {
	r := delta()
	r.Mode, r.Kinds, r.Removed = schema.ModeSnapshot, []string{"Kustomization"}, nil
	return r
}

func TestReportValidateAccepts(t *testing.T) {
	cases := map[string]func(*schema.Report){
		"Delta":           func(*schema.Report) {},
		"DeltaOfNothing":  func(r *schema.Report) { r.Reconcilers, r.Removed = nil, nil },
		"DeltaNoKinds":    func(r *schema.Report) { r.Kinds = []string{} },
		"Snapshot":        func(r *schema.Report) { *r = snapshot() },
		"SnapshotNoKinds": func(r *schema.Report) { *r = snapshot(); r.Kinds = []string{} },
		"SnapshotInParts": func(r *schema.Report) { *r = snapshot(); r.Part, r.Parts = 3, 3 },
		"MostParts":       func(r *schema.Report) { *r = snapshot(); r.Part, r.Parts = 1, schema.MaxParts },
		"LastNumbers":     func(r *schema.Report) { r.Epoch, r.Sequence = schema.MaxEpoch, schema.MaxSequence },
		"Unlisted":        func(r *schema.Report) { r.UnlistedKinds = []string{"Application"} },
		"MessageLong":     func(r *schema.Report) { r.Reconcilers[0].Message = strings.Repeat("x", 100_000) },
		"MessageOfLines":  func(r *schema.Report) { r.Reconcilers[0].Message = "a\nb\tc" },
		"NoSources":       func(r *schema.Report) { r.Reconcilers[0].Sources = []schema.Source{} },
		"FewerRevisions":  func(r *schema.Report) { r.Reconcilers[0].Applied = nil },
		"EmptyRevision":   func(r *schema.Report) { r.Reconcilers[0].Applied = []string{""} },
		"RevisionOfText":  func(r *schema.Report) { r.Reconcilers[0].Applied = []string{"what ever"} },
		"NoSourceRevision": func(r *schema.Report) {
			r.Reconcilers[0].Sources = []schema.Source{}
			r.Reconcilers[0].SourceRevision = ""
		},
		"NoOwner": func(r *schema.Report) { r.Reconcilers[0].Owner = nil },
		"NoTimes": func(r *schema.Report) { r.Reconcilers[0].Since, r.Reconcilers[0].ObservedAt = time.Time{}, time.Time{} },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			r := delta()
			change(&r)
			if err := r.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReportValidateRefuses(t *testing.T) {
	first := func(change func(*schema.Reconciler)) func(*schema.Report) {
		return func(r *schema.Report) { change(&r.Reconcilers[0]) }
	}
	src := func(change func(*schema.Source)) func(*schema.Report) {
		return func(r *schema.Report) { change(&r.Reconcilers[0].Sources[0]) }
	}
	snap := func(change func(*schema.Report)) func(*schema.Report) {
		return func(r *schema.Report) { *r = snapshot(); change(r) }
	}
	const at = "/reconcilers/0"
	cases := map[string]struct {
		change  func(*schema.Report)
		code    schema.Code
		pointer string
	}{
		"NoEpoch":          {func(r *schema.Report) { r.Epoch = 0 }, schema.CodeMissingField, "/epoch"},
		"EpochTooLarge":    {func(r *schema.Report) { r.Epoch = schema.MaxEpoch + 1 }, schema.CodeInvalidField, "/epoch"},
		"NoSequence":       {func(r *schema.Report) { r.Sequence = 0 }, schema.CodeMissingField, "/sequence"},
		"SequenceTooLarge": {func(r *schema.Report) { r.Sequence = schema.MaxSequence + 1 }, schema.CodeInvalidField, "/sequence"},
		"NoObservedAt":     {func(r *schema.Report) { r.ObservedAt = time.Time{} }, schema.CodeMissingField, "/observed_at"},
		"ObservedTooEarly": {func(r *schema.Report) { r.ObservedAt = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }, schema.CodeInvalidField, "/observed_at"},
		"ObservedTooLate":  {func(r *schema.Report) { r.ObservedAt = time.Date(2201, 1, 1, 0, 0, 0, 0, time.UTC) }, schema.CodeInvalidField, "/observed_at"},
		"AgentVersion":     {func(r *schema.Report) { r.Agent.Version = "a\x00" }, schema.CodeInvalidField, "/agent/version"},

		"NoMode":             {func(r *schema.Report) { r.Mode = "" }, schema.CodeMissingField, "/mode"},
		"OtherMode":          {func(r *schema.Report) { r.Mode = "full" }, schema.CodeInvalidField, "/mode"},
		"SnapshotNilKinds":   {snap(func(r *schema.Report) { r.Kinds = nil }), schema.CodeMissingField, "/kinds"},
		"SnapshotRemoves":    {snap(func(r *schema.Report) { r.Removed = delta().Removed }), schema.CodeInvalidField, "/removed"},
		"PartWithoutParts":   {snap(func(r *schema.Report) { r.Part = 1 }), schema.CodeInvalidField, "/part"},
		"PartsWithoutPart":   {snap(func(r *schema.Report) { r.Parts = 2 }), schema.CodeInvalidField, "/part"},
		"PartBeyondParts":    {snap(func(r *schema.Report) { r.Part, r.Parts = 3, 2 }), schema.CodeInvalidField, "/part"},
		"NegativePart":       {snap(func(r *schema.Report) { r.Part, r.Parts = -1, 2 }), schema.CodeInvalidField, "/part"},
		"TooManyParts":       {snap(func(r *schema.Report) { r.Part, r.Parts = 1, schema.MaxParts+1 }), schema.CodeInvalidField, "/part"},
		"DeltaWithKinds":     {func(r *schema.Report) { r.Kinds = []string{"X"} }, schema.CodeInvalidField, "/kinds"},
		"DeltaInParts":       {func(r *schema.Report) { r.Part, r.Parts = 1, 1 }, schema.CodeInvalidField, "/part"},
		"TooManyKinds":       {snap(func(r *schema.Report) { r.Kinds = make([]string, schema.MaxKinds+1) }), schema.CodeInvalidField, "/kinds"},
		"EmptyKind":          {snap(func(r *schema.Report) { r.Kinds = []string{"A", ""} }), schema.CodeMissingField, "/kinds/1"},
		"LongKind":           {snap(func(r *schema.Report) { r.Kinds = []string{strings.Repeat("k", 254)} }), schema.CodeInvalidField, "/kinds/0"},
		"EmptyUnlistedKind":  {func(r *schema.Report) { r.UnlistedKinds = []string{""} }, schema.CodeMissingField, "/unlisted_kinds/0"},
		"ListedAndNotListed": {snap(func(r *schema.Report) { r.UnlistedKinds = []string{"A", "Kustomization"} }), schema.CodeInvalidField, "/unlisted_kinds/1"},

		"SameTwice":        {func(r *schema.Report) { r.Reconcilers = append(r.Reconcilers, full()) }, schema.CodeDuplicate, "/reconcilers/1"},
		"RemovedTwice":     {func(r *schema.Report) { r.Removed = append(r.Removed, r.Removed[0]) }, schema.CodeDuplicate, "/removed/1"},
		"SentAndRemoved":   {func(r *schema.Report) { r.Removed[0] = r.Reconcilers[0].Ref() }, schema.CodeDuplicate, "/removed/0"},
		"RemovedNoKind":    {func(r *schema.Report) { r.Removed[0].Kind = "" }, schema.CodeMissingField, "/removed/0/kind"},
		"RemovedNoName":    {func(r *schema.Report) { r.Removed[0].Name = "" }, schema.CodeMissingField, "/removed/0/name"},
		"NoKind":           {first(func(r *schema.Reconciler) { r.Kind = "" }), schema.CodeMissingField, at + "/kind"},
		"NoNamespace":      {first(func(r *schema.Reconciler) { r.Namespace = "" }), schema.CodeMissingField, at + "/namespace"},
		"NoName":           {first(func(r *schema.Reconciler) { r.Name = "" }), schema.CodeMissingField, at + "/name"},
		"LongName":         {first(func(r *schema.Reconciler) { r.Name = strings.Repeat("n", 254) }), schema.CodeInvalidField, at + "/name"},
		"ControlInName":    {first(func(r *schema.Reconciler) { r.Name = "a\nb" }), schema.CodeInvalidField, at + "/name"},
		"LongCluster":      {first(func(r *schema.Reconciler) { r.Cluster = strings.Repeat("c", 254) }), schema.CodeInvalidField, at + "/cluster"},
		"NilSources":       {first(func(r *schema.Reconciler) { r.Sources = nil }), schema.CodeMissingField, at + "/sources"},
		"TooManySources":   {first(func(r *schema.Reconciler) { r.Sources = make([]schema.Source, schema.MaxSources+1) }), schema.CodeInvalidField, at + "/sources"},
		"NoStatus":         {first(func(r *schema.Reconciler) { r.Status = "" }), schema.CodeMissingField, at + "/status"},
		"OtherStatus":      {first(func(r *schema.Reconciler) { r.Status = "Ready" }), schema.CodeInvalidField, at + "/status"},
		"ReasonControl":    {first(func(r *schema.Reconciler) { r.Reason = "\x1b[31m" }), schema.CodeInvalidField, at + "/reason"},
		"ReasonLong":       {first(func(r *schema.Reconciler) { r.Reason = strings.Repeat("r", 1025) }), schema.CodeInvalidField, at + "/reason"},
		"HealthControl":    {first(func(r *schema.Reconciler) { r.Health = "\u2028" }), schema.CodeInvalidField, at + "/health"},
		"SourceRevision":   {first(func(r *schema.Reconciler) { r.SourceRevision = "\xff" }), schema.CodeInvalidField, at + "/source_revision"},
		"MessageNotUTF8":   {first(func(r *schema.Reconciler) { r.Message = "\xff" }), schema.CodeInvalidField, at + "/message"},
		"SourceErrorBytes": {first(func(r *schema.Reconciler) { r.SourceError = "\xff" }), schema.CodeInvalidField, at + "/source_error"},
		"Attempted":        {first(func(r *schema.Reconciler) { r.Attempted = []string{"a", "b"} }), schema.CodeInvalidField, at + "/attempted"},
		"Applied":          {first(func(r *schema.Reconciler) { r.Applied = []string{"a", "b"} }), schema.CodeInvalidField, at + "/applied"},
		"Origin":           {first(func(r *schema.Reconciler) { r.Origin = []string{"a", "b"} }), schema.CodeInvalidField, at + "/origin"},
		"RevisionControl":  {first(func(r *schema.Reconciler) { r.Applied = []string{"a\x00"} }), schema.CodeInvalidRevision, at + "/applied/0"},
		"RevisionLong":     {first(func(r *schema.Reconciler) { r.Origin = []string{strings.Repeat("r", 1025)} }), schema.CodeInvalidRevision, at + "/origin/0"},
		"RevisionsOfNone":  {first(func(r *schema.Reconciler) { r.Sources, r.Applied = []schema.Source{}, make([]string, 65) }), schema.CodeInvalidField, at + "/applied"},
		"SinceTooEarly":    {first(func(r *schema.Reconciler) { r.Since = time.Unix(-1e9, 0) }), schema.CodeInvalidField, at + "/since"},
		"SeenTooLate":      {first(func(r *schema.Reconciler) { r.ObservedAt = time.Unix(1e10, 0) }), schema.CodeInvalidField, at + "/observed_at"},
		"OwnsItself":       {first(func(r *schema.Reconciler) { o := r.Ref(); r.Owner = &o }), schema.CodeInvalidField, at + "/owner"},
		"OwnerNoName":      {first(func(r *schema.Reconciler) { r.Owner = &schema.ObjectRef{Kind: "K", Namespace: "n"} }), schema.CodeMissingField, at + "/owner/name"},

		"NoSourceType":    {src(func(s *schema.Source) { s.Type = "" }), schema.CodeMissingField, at + "/sources/0/type"},
		"OtherSourceType": {src(func(s *schema.Source) { s.Type = "svn" }), schema.CodeInvalidField, at + "/sources/0/type"},
		"NoURL":           {src(func(s *schema.Source) { s.URL = "" }), schema.CodeMissingField, at + "/sources/0/url"},
		"BadURL":          {src(func(s *schema.Source) { s.URL = "repo" }), schema.CodeInvalidRepo, at + "/sources/0/url"},
		"BadRef":          {src(func(s *schema.Source) { s.Ref = "refs/heads/" }), schema.CodeInvalidRef, at + "/sources/0/ref"},
		"ClimbingPath":    {src(func(s *schema.Source) { s.Path = "../x" }), schema.CodeInvalidPath, at + "/sources/0/path"},
		"ControlPath":     {src(func(s *schema.Source) { s.Path = "a\x00" }), schema.CodeInvalidPath, at + "/sources/0/path"},
		"LongURL":         {src(func(s *schema.Source) { s.URL = "https://h.x/" + strings.Repeat("a", 2048) }), schema.CodeInvalidField, at + "/sources/0"},
		"LongRef":         {src(func(s *schema.Source) { s.Ref = strings.Repeat("a", 1025) }), schema.CodeInvalidField, at + "/sources/0"},
		"LongPath":        {src(func(s *schema.Source) { s.Path = strings.Repeat("a", 4097) }), schema.CodeInvalidField, at + "/sources/0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := delta()
			c.change(&r)
			expectInvalid(t, r.Validate(), c.code, c.pointer)
		})
	}
}

// expectInvalid wants a complaint of a code about a member, with words.
func expectInvalid(t *testing.T, err error, code schema.Code, pointer string) {
	t.Helper()
	var bad *schema.Invalid
	if !errors.As(err, &bad) {
		t.Fatalf("want %s at %s, got %v", code, pointer, err)
	}
	if bad.Code != code || bad.Pointer != pointer || bad.Detail == "" {
		t.Errorf("want %s at %s, got %v", code, pointer, err)
	}
}

func TestReportNormalize(t *testing.T) {
	r := delta()
	rec := &r.Reconcilers[0]
	rec.Sources[0].URL = "https://bob:s3cret@git.example/org/repo.git"
	rec.Message = strings.Repeat("x", schema.MaxMessage-1) + "é" // its last character would be cut in two
	rec.SourceError = strings.Repeat("日", schema.MaxMessage)
	r.Normalize()
	if rec.Sources[0].URL != "https://git.example/org/repo.git" {
		t.Errorf("user info stays: %s", rec.Sources[0].URL)
	}
	if rec.Message != strings.Repeat("x", schema.MaxMessage-1) {
		t.Errorf("a message is cut at the border of a character, got %d bytes", len(rec.Message))
	}
	if len(rec.SourceError) != schema.MaxMessage-1 || !utf8.ValidString(rec.SourceError) {
		t.Errorf("a source error too, got %d bytes", len(rec.SourceError))
	}
	before := *rec
	r.Normalize()
	if before.Digest() != rec.Digest() {
		t.Error("normalized twice is normalized once")
	}
	rec.Message = strings.Repeat("x", schema.MaxMessage)
	r.Normalize()
	if len(rec.Message) != schema.MaxMessage {
		t.Error("a message of the greatest length stays whole")
	}
}

func TestRegistration(t *testing.T) {
	long := strings.Repeat("x", 254)
	cases := map[string]struct {
		in      schema.Registration
		code    schema.Code
		pointer string
	}{
		"Empty":          {in: schema.Registration{}},
		"Shorthand":      {in: schema.Registration{Environment: "dev", Type: "drone"}},
		"Memberships":    {in: schema.Registration{Memberships: []schema.Membership{{Environment: "dev", Type: "drone"}, {Environment: "stage", Type: "drone"}}}},
		"Everything":     {in: schema.Registration{Kind: schema.ClusterHost, HeartbeatInterval: schema.Duration(time.Second), Labels: map[string]string{"a/b": ""}, ReportsFor: []string{"edge-1"}}},
		"Both":           {schema.Registration{Environment: "dev", Type: "drone", Memberships: []schema.Membership{{Environment: "a", Type: "b"}}}, schema.CodeInvalidField, "/environment"},
		"Half":           {schema.Registration{Environment: "dev"}, schema.CodeMissingField, "/environment"},
		"OtherHalf":      {schema.Registration{Type: "drone"}, schema.CodeMissingField, "/environment"},
		"NoEnvironment":  {schema.Registration{Memberships: []schema.Membership{{Type: "b"}}}, schema.CodeMissingField, "/memberships/0/environment"},
		"NoType":         {schema.Registration{Memberships: []schema.Membership{{Environment: "a"}}}, schema.CodeMissingField, "/memberships/0/type"},
		"Twice":          {schema.Registration{Memberships: []schema.Membership{{Environment: "a", Type: "b"}, {Environment: "a", Type: "b"}}}, schema.CodeDuplicate, "/memberships/1"},
		"TooMany":        {schema.Registration{ReportsFor: make([]string, schema.MaxReportsFor+1)}, schema.CodeInvalidField, ""},
		"NoLabelKey":     {schema.Registration{Labels: map[string]string{"": "x"}}, schema.CodeMissingField, "/labels/"},
		"LabelValue":     {schema.Registration{Labels: map[string]string{"k": "\n"}}, schema.CodeInvalidField, "/labels/k"},
		"LabelSlash":     {schema.Registration{Labels: map[string]string{"a/b~c": "\n"}}, schema.CodeInvalidField, "/labels/a~1b~0c"},
		"ReportsForName": {schema.Registration{ReportsFor: []string{"ok", "-x"}}, schema.CodeInvalidField, "/reports_for/1"},
		"ReportsForLong": {schema.Registration{ReportsFor: []string{long}}, schema.CodeInvalidField, "/reports_for/0"},
		"Kind":           {schema.Registration{Kind: "vm"}, schema.CodeInvalidField, "/kind"},
		"TooFast":        {schema.Registration{HeartbeatInterval: schema.Duration(time.Millisecond)}, schema.CodeInvalidField, "/heartbeat_interval"},
		"TooSlow":        {schema.Registration{HeartbeatInterval: schema.Duration(25 * time.Hour)}, schema.CodeInvalidField, "/heartbeat_interval"},
		"Negative":       {schema.Registration{HeartbeatInterval: schema.Duration(-time.Second)}, schema.CodeInvalidField, "/heartbeat_interval"},
		"Version":        {schema.Registration{Agent: schema.Agent{Version: "\x00"}}, schema.CodeInvalidField, "/agent/version"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.in.Validate()
			if c.code != "" {
				expectInvalid(t, err, c.code, c.pointer)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.in.Normalize()
			if err := c.in.Validate(); err != nil || c.in.Kind == "" || c.in.HeartbeatInterval == 0 || c.in.Environment != "" {
				t.Errorf("normalized: %+v, %v", c.in, err)
			}
		})
	}
	in := schema.Registration{Environment: "dev", Type: "drone"}
	in.Normalize()
	if len(in.Memberships) != 1 || in.Memberships[0] != (schema.Membership{Environment: "dev", Type: "drone"}) {
		t.Errorf("the shorthand is one membership, got %+v", in.Memberships)
	}
}

func TestHeartbeatValidate(t *testing.T) {
	good := schema.Heartbeat{Epoch: 7, Sequence: 41, Digest: strings.Repeat("0a", 16)}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for pointer, change := range map[string]func(*schema.Heartbeat){
		"/epoch":         func(h *schema.Heartbeat) { h.Epoch = schema.MaxEpoch + 1 },
		"/digest":        func(h *schema.Heartbeat) { h.Digest = "x" },
		"/agent/version": func(h *schema.Heartbeat) { h.Agent.Version = "\n" },
	} {
		h := good
		change(&h)
		expectInvalid(t, h.Validate(), schema.CodeInvalidField, pointer)
	}
	h := good
	h.Epoch = 0
	expectInvalid(t, h.Validate(), schema.CodeMissingField, "/epoch")
	h = good
	h.Sequence = schema.MaxSequence + 1
	expectInvalid(t, h.Validate(), schema.CodeInvalidField, "/sequence")
	h = good
	h.Digest, h.Sequence = "", 0
	if err := h.Validate(); err != nil {
		t.Errorf("nothing to compare is allowed: %v", err)
	}
}

func TestValidateClusterName(t *testing.T) {
	for _, name := range []string{"a", "drone-07", "A.b_c:d@e", "0", strings.Repeat("x", 253)} {
		if err := schema.ValidateClusterName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "-a", ".a", "a b", "a/b", "é", "a%b", "..", strings.Repeat("x", 254)} {
		if schema.ValidateClusterName(name) == nil {
			t.Errorf("%q must be refused", name)
		}
	}
}

func TestVersion(t *testing.T) {
	if schema.Version(1, schema.MaxSequence) >= schema.Version(2, 1) {
		t.Error("a newer epoch is newer than any sequence of an older one")
	}
	e, s := schema.SplitVersion(schema.Version(schema.MaxEpoch, schema.MaxSequence))
	if e != schema.MaxEpoch || s != schema.MaxSequence {
		t.Errorf("taken apart: %d, %d", e, s)
	}
}

func TestReportJSON(t *testing.T) {
	// The example of the interface, read and written.
	const in = `{"agent":{"version":"0.1.0"},"epoch":7,"sequence":42,"mode":"delta","observed_at":"2026-11-20T09:00:00Z","reconcilers":[{"kind":"Kustomization","namespace":"flux-system","name":"app","sources":[{"type":"git","url":"https://github.com/org/app-gitops","ref":"dev","path":"./functional-test"}],"status":"success","reason":"ReconciliationSucceeded","message":"Applied revision","attempted":["dev@sha1:1"],"applied":["dev@sha1:1"]}]}`
	var r schema.Report
	if err := json.Unmarshal([]byte(in), &r); err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != in {
		t.Errorf("want\n%s\ngot\n%s", in, out)
	}
	// An empty list of unlisted kinds says more than none.
	r.UnlistedKinds = []string{}
	if out, err = json.Marshal(r); err != nil || !strings.Contains(string(out), `"unlisted_kinds":[]`) {
		t.Errorf("got %s, %v", out, err)
	}
}
