package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a report and of a registration.
const (
	// MaxMessage is where messages are cut, in bytes.
	MaxMessage = 4096
	// MaxSequence bounds sequence numbers, so that (epoch, sequence) fits 64 bits.
	MaxSequence = 1<<40 - 1
	// MaxEpoch bounds epochs for the same reason.
	MaxEpoch = 1<<24 - 1
	// MaxParts bounds the messages of one snapshot.
	MaxParts = 10_000
	// MaxSources bounds the sources of one reconciler.
	MaxSources = 64
	// MaxKinds bounds the kinds that one message names.
	MaxKinds = 256
	// MaxMemberships, MaxLabels and MaxReportsFor bound a registration.
	MaxMemberships = 64
	MaxLabels      = 64
	MaxReportsFor  = 1000

	maxName = 253
	maxText = 1024
	maxURL  = 2048
	maxPath = 4096
)

// Version joins epoch and sequence into the number that orders a cluster's
// messages.
func Version(epoch, sequence uint64) uint64 { return epoch<<40 | sequence }

// SplitVersion is the inverse of Version.
func SplitVersion(v uint64) (epoch, sequence uint64) { return v >> 40, v & MaxSequence }

// Normalize brings a report into the form that is stored and fingerprinted:
// messages and source errors cut, user info stripped from URLs.
func (r *Report) Normalize() {
	for i := range r.Reconcilers {
		rec := &r.Reconcilers[i]
		rec.Message = cut(rec.Message, MaxMessage)
		rec.SourceError = cut(rec.SourceError, MaxMessage)
		for j := range rec.Sources {
			rec.Sources[j].URL = StripUserInfo(rec.Sources[j].URL)
		}
	}
}

// cut shortens s to at most n bytes at the border of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Validate checks a report as far as it can be judged by itself. The error is
// an *Invalid that names the first bad member.
func (r *Report) Validate() error {
	if r.Epoch == 0 {
		return missing("/epoch", "the epoch that PUT /clusters/{cluster} answered")
	}
	if r.Epoch > MaxEpoch {
		return invalid(CodeInvalidField, "/epoch", "an epoch is at most %d", uint64(MaxEpoch))
	}
	if r.Sequence == 0 {
		return missing("/sequence", "a number from 1, one more with each message")
	}
	if r.Sequence > MaxSequence {
		return invalid(CodeInvalidField, "/sequence", "a sequence is at most %d", uint64(MaxSequence))
	}
	if r.ObservedAt.IsZero() {
		return missing("/observed_at", "when the agent saw it, as 2026-11-20T09:00:00Z")
	}
	if err := storableTime("/observed_at", r.ObservedAt); err != nil {
		return err
	}
	if err := plainField("/agent/version", r.Agent.Version, maxText, false); err != nil {
		return err
	}
	if err := r.validateMode(); err != nil {
		return err
	}
	return r.validateObjects()
}

func (r *Report) validateMode() error {
	if err := kinds("/kinds", r.Kinds); err != nil {
		return err
	}
	if err := kinds("/unlisted_kinds", r.UnlistedKinds); err != nil {
		return err
	}
	for i, k := range r.UnlistedKinds {
		for _, covered := range r.Kinds {
			if k == covered {
				return invalid(CodeInvalidField, pointer("unlisted_kinds", i), "%s is in kinds too: a kind was listed completely or it was not", k)
			}
		}
	}
	switch r.Mode {
	case ModeSnapshot:
		if r.Kinds == nil {
			return missing("/kinds", "the kinds that were listed completely; [] for none")
		}
		if len(r.Removed) > 0 {
			return invalid(CodeInvalidField, "/removed", "a snapshot says what is gone by leaving it out; only a delta removes")
		}
		if r.Part < 0 || r.Parts < 0 || r.Part > r.Parts || (r.Part == 0) != (r.Parts == 0) || r.Parts > MaxParts {
			return invalid(CodeInvalidField, "/part", "part and parts come together, 1 ≤ part ≤ parts ≤ %d", MaxParts)
		}
	case ModeDelta:
		if len(r.Kinds) > 0 {
			return invalid(CodeInvalidField, "/kinds", "only a snapshot covers kinds")
		}
		if r.Part != 0 || r.Parts != 0 {
			return invalid(CodeInvalidField, "/part", "only a snapshot travels in parts")
		}
	case "":
		return missing("/mode", "snapshot or delta")
	default:
		return invalid(CodeInvalidField, "/mode", "mode is snapshot or delta, not %q", string(r.Mode))
	}
	return nil
}

func (r *Report) validateObjects() error {
	seen := make(map[ObjectRef]struct{}, len(r.Reconcilers)+len(r.Removed))
	for i := range r.Reconcilers {
		rec := &r.Reconcilers[i]
		at := pointer("reconcilers", i)
		if err := rec.validate(at); err != nil {
			return err
		}
		if _, twice := seen[rec.Ref()]; twice {
			return invalid(CodeDuplicate, at, "%s stands in this report twice", rec.Ref())
		}
		seen[rec.Ref()] = struct{}{}
	}
	for i, ref := range r.Removed {
		at := pointer("removed", i)
		if err := ref.validate(at); err != nil {
			return err
		}
		if _, twice := seen[ref]; twice {
			return invalid(CodeDuplicate, at, "%s stands in this report twice", ref)
		}
		seen[ref] = struct{}{}
	}
	return nil
}

func (r ObjectRef) validate(at string) error {
	if err := identityField(at, "kind", r.Kind); err != nil {
		return err
	}
	if err := identityField(at, "namespace", r.Namespace); err != nil {
		return err
	}
	return identityField(at, "name", r.Name)
}

// identityField checks a part of kind/namespace/name, which holds no slash, so
// that the three can be told apart again.
func identityField(at, name, value string) error {
	if strings.IndexByte(value, '/') >= 0 {
		return invalid(CodeInvalidField, at+"/"+name, "it holds a slash; kind/namespace/name could not be told apart")
	}
	return plainField(at+"/"+name, value, maxName, true)
}

func (r *Reconciler) validate(at string) error {
	if err := r.Ref().validate(at); err != nil {
		return err
	}
	if err := plainField(at+"/cluster", r.Cluster, maxName, false); err != nil {
		return err
	}
	if r.Sources == nil {
		return missing(at+"/sources", "where it reads manifests from; [] where that is not known")
	}
	if len(r.Sources) > MaxSources {
		return invalid(CodeInvalidField, at+"/sources", "a reconciler has at most %d sources", MaxSources)
	}
	for i := range r.Sources {
		if err := r.Sources[i].validate(at + pointer("sources", i)); err != nil {
			return err
		}
	}
	if r.Status == "" {
		return missing(at+"/status", "one of success, failure, in_progress, pending, suspended, unknown")
	}
	if !r.Status.Valid() {
		return invalid(CodeInvalidField, at+"/status", "status is success, failure, in_progress, pending, suspended or unknown, not %q", string(r.Status))
	}
	for _, f := range []struct {
		name  string
		value string
	}{{"reason", r.Reason}, {"health", r.Health}, {"source_revision", r.SourceRevision}} {
		if err := plainField(at+"/"+f.name, f.value, maxText, false); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, value string }{{"message", r.Message}, {"source_error", r.SourceError}} {
		if !utf8.ValidString(f.value) {
			return invalid(CodeInvalidField, at+"/"+f.name, "it is not UTF-8")
		}
	}
	for _, f := range []struct {
		name string
		revs []string
	}{{"attempted", r.Attempted}, {"applied", r.Applied}, {"origin", r.Origin}} {
		if err := r.revisions(at+"/"+f.name, f.revs); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name string
		at   time.Time
	}{{"since", r.Since}, {"observed_at", r.ObservedAt}} {
		if err := storableTime(at+"/"+f.name, f.at); err != nil {
			return err
		}
	}
	if r.Owner == nil {
		return nil
	}
	if *r.Owner == r.Ref() {
		return invalid(CodeInvalidField, at+"/owner", "a reconciler cannot own itself")
	}
	return r.Owner.validate(at + "/owner")
}

// revisions checks a list that goes with the sources. Where no source is known
// the list stands by itself.
func (r *Reconciler) revisions(at string, revs []string) error {
	if len(revs) > len(r.Sources) && len(r.Sources) > 0 || len(revs) > MaxSources {
		return invalid(CodeInvalidField, at, "it has %d revisions for %d sources; one belongs to each", len(revs), len(r.Sources))
	}
	for i, rev := range revs {
		p := at + "/" + strconv.Itoa(i)
		if len(rev) > maxText {
			return invalid(CodeInvalidRevision, p, "a revision has at most %d bytes", maxText)
		}
		if err := plainText(rev); err != nil {
			return invalid(CodeInvalidRevision, p, "a revision is printable text such as main@sha1:<40 hex digits>; this one holds %v", err)
		}
	}
	return nil
}

func (s Source) validate(at string) error {
	switch s.Type {
	case SourceGit, SourceOCI, SourceHelm, SourceBucket:
	case "":
		return missing(at+"/type", "git, oci, helm or bucket")
	default:
		return invalid(CodeInvalidField, at+"/type", "a source's type is git, oci, helm or bucket, not %q", string(s.Type))
	}
	if s.URL == "" {
		return missing(at+"/url", "the repository's URL")
	}
	if len(s.URL) > maxURL || len(s.Ref) > maxText || len(s.Path) > maxPath {
		return invalid(CodeInvalidField, at, "a source has at most %d bytes of url, %d of ref and %d of path", maxURL, maxText, maxPath)
	}
	_, err := s.Endpoint()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrInvalidRepo):
		return invalid(CodeInvalidRepo, at+"/url", "%v", err)
	case errors.Is(err, ErrInvalidRef):
		return invalid(CodeInvalidRef, at+"/ref", "%v", err)
	default:
		return invalid(CodeInvalidPath, at+"/path", "%v", err)
	}
}

// Normalize spells out the shorthand and the defaults of a registration.
func (r *Registration) Normalize() {
	if r.Environment != "" || r.Type != "" {
		r.Memberships = append(r.Memberships, Membership{Environment: r.Environment, Type: r.Type})
		r.Environment, r.Type = "", ""
	}
	if r.Kind == "" {
		r.Kind = ClusterKubernetes
	}
	if r.HeartbeatInterval == 0 {
		r.HeartbeatInterval = DefaultHeartbeatInterval
	}
}

// Validate checks a registration before Normalize. The error is an *Invalid.
func (r *Registration) Validate() error {
	if (r.Environment != "" || r.Type != "") && len(r.Memberships) > 0 {
		return invalid(CodeInvalidField, "/environment", "environment and type are shorthand for one membership: write one or the other")
	}
	if (r.Environment == "") != (r.Type == "") {
		return missing("/environment", "environment and type come together")
	}
	all := r.Memberships
	if r.Environment != "" {
		all = []Membership{{Environment: r.Environment, Type: r.Type}}
	}
	if len(all) > MaxMemberships || len(r.Labels) > MaxLabels || len(r.ReportsFor) > MaxReportsFor {
		return invalid(CodeInvalidField, "", "at most %d memberships, %d labels, %d clusters to report for", MaxMemberships, MaxLabels, MaxReportsFor)
	}
	seen := map[Membership]bool{}
	for i, m := range all {
		at := pointer("memberships", i)
		if err := plainField(at+"/environment", m.Environment, maxName, true); err != nil {
			return err
		}
		if err := plainField(at+"/type", m.Type, maxName, true); err != nil {
			return err
		}
		if seen[m] {
			return invalid(CodeDuplicate, at, "%s/%s stands twice", m.Environment, m.Type)
		}
		seen[m] = true
	}
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		at := "/labels/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		if err := plainField(at, k, 2*maxName, true); err != nil {
			return err
		}
		if err := plainField(at, r.Labels[k], maxText, false); err != nil {
			return err
		}
	}
	for i, name := range r.ReportsFor {
		if err := ValidateClusterName(name); err != nil {
			return invalid(CodeInvalidField, pointer("reports_for", i), "%v", err)
		}
	}
	if r.Kind != "" && r.Kind != ClusterKubernetes && r.Kind != ClusterHost {
		return invalid(CodeInvalidField, "/kind", "kind is kubernetes or host, not %q", string(r.Kind))
	}
	if d := time.Duration(r.HeartbeatInterval); d != 0 && (d < time.Second || d > 24*time.Hour) {
		return invalid(CodeInvalidField, "/heartbeat_interval", "a heartbeat interval is from 1s to 24h, not %s", r.HeartbeatInterval)
	}
	return plainField("/agent/version", r.Agent.Version, maxText, false)
}

// Validate checks a heartbeat. The error is an *Invalid.
func (h *Heartbeat) Validate() error {
	if h.Epoch == 0 {
		return missing("/epoch", "the epoch that PUT /clusters/{cluster} answered")
	}
	if h.Epoch > MaxEpoch {
		return invalid(CodeInvalidField, "/epoch", "an epoch is at most %d", uint64(MaxEpoch))
	}
	if h.Sequence > MaxSequence {
		return invalid(CodeInvalidField, "/sequence", "a sequence is at most %d", uint64(MaxSequence))
	}
	if _, ok := ParseDigest(h.Digest); h.Digest != "" && !ok {
		return invalid(CodeInvalidField, "/digest", "a digest is 32 hex digits, or left out for no comparison")
	}
	return plainField("/agent/version", h.Agent.Version, maxText, false)
}

// ValidateClusterName checks a cluster's name: 1 to 253 letters, digits and
// `-_.:@`, beginning with a letter or a digit, so that it can stand in a URL.
func ValidateClusterName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a cluster's name has 1 to %d characters", maxName)
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("-_.:@", rune(c))) {
			return fmt.Errorf("a cluster's name has letters, digits and -_.:@, and begins with a letter or a digit; not %q", name)
		}
	}
	return nil
}

func kinds(at string, list []string) error {
	if len(list) > MaxKinds {
		return invalid(CodeInvalidField, at, "at most %d kinds", MaxKinds)
	}
	for i, k := range list {
		if err := plainField(at+"/"+strconv.Itoa(i), k, maxName, true); err != nil {
			return err
		}
	}
	return nil
}

// storableTime refuses times that the store's columns cannot hold.
func storableTime(at string, t time.Time) error {
	if !t.IsZero() && (t.Year() < 1970 || t.Year() > 2200) {
		return invalid(CodeInvalidField, at, "a time is between the years 1970 and 2200, not %d", t.Year())
	}
	return nil
}

func plainField(at, value string, longest int, required bool) error {
	if value == "" {
		if required {
			return missing(at, "a text that is not empty")
		}
		return nil
	}
	if len(value) > longest {
		return invalid(CodeInvalidField, at, "it has %d bytes; at most %d are allowed", len(value), longest)
	}
	if err := plainText(value); err != nil {
		return invalid(CodeInvalidField, at, "it holds %v", err)
	}
	return nil
}

func pointer(name string, i int) string { return "/" + name + "/" + strconv.Itoa(i) }

func missing(at, want string) error {
	return &Invalid{Code: CodeMissingField, Pointer: at, Detail: "it is missing; write " + want}
}

func invalid(code Code, at, format string, args ...any) error {
	return &Invalid{Code: code, Pointer: at, Detail: fmt.Sprintf(format, args...)}
}
