package outbox

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// reasonRefused is the reason of a reconciler that stands as unknown because
// its facts cannot be reported.
const reasonRefused = "NotReportable"

// weakest is the last of the forms that a reconciler can be reported in; one
// beyond it is withheld.
const weakest = 4

// form is a reconciler as it is sent, and the digest of that.
type form struct {
	rec    schema.Reconciler
	digest schema.Digest
	size   int
	// why says what was wrong with the facts as they were put, else "".
	why string
}

// newForm makes the form in which a reconciler's facts are reported: all of
// them, or, where they are not valid, as much as still stands. ok is false for
// one without a valid identity, which cannot be reported at all.
func (o *Options) newForm(rec schema.Reconciler) (f form, ok bool) {
	rec.Sources = append([]schema.Source{}, rec.Sources...) // normalizing writes to them; none is [], never absent
	err := o.check(&rec)
	if err == nil {
		return measured(rec), true
	}
	f, _, ok = o.reduced(rec, 1, err.Error())
	f.why = err.Error()
	return f, ok
}

// check normalizes a reconciler and says what a hub would refuse in it.
func (o *Options) check(rec *schema.Reconciler) error {
	if rec.Cluster != "" && rec.Cluster != o.Cluster && !slices.Contains(o.Registration.ReportsFor, rec.Cluster) {
		return fmt.Errorf("it deploys to %q, which is not in reports_for of %s", rec.Cluster, o.Cluster)
	}
	r := schema.Report{Epoch: 1, Sequence: 1, Mode: schema.ModeDelta, ObservedAt: time.Unix(0, 0), Reconcilers: []schema.Reconciler{*rec}}
	r.Normalize()
	*rec = r.Reconcilers[0]
	err := r.Validate()
	if invalid, ok := errors.AsType[*schema.Invalid](err); ok {
		return errors.New(withoutIndex(invalid.Error()))
	}
	return err
}

// reduced returns a form that says unknown, and why, and no more than can be
// said: at level 1 where it reads from and who owns it, at 2 and 3 one of the
// two, at 4 its identity alone. The level is the first from the given one on
// that is valid.
func (o *Options) reduced(rec schema.Reconciler, level int, why string) (f form, at int, ok bool) {
	for ; level <= weakest; level++ {
		less := schema.Reconciler{
			Kind: rec.Kind, Namespace: rec.Namespace, Name: rec.Name, Sources: []schema.Source{},
			Status: schema.StatusUnknown, Reason: reasonRefused, Message: strings.ToValidUTF8("its facts cannot be reported: "+why, "?"),
		}
		if level == 1 || level == 2 {
			less.Sources = rec.Sources
		}
		if level == 1 || level == 3 {
			less.Owner = rec.Owner
		}
		if o.check(&less) == nil {
			return measured(less), level, true
		}
	}
	return form{}, weakest + 1, false
}

func measured(rec schema.Reconciler) form {
	return form{rec: rec, digest: rec.Digest(), size: size(&rec)}
}

var reconcilerIndex = regexp.MustCompile(`/(reconcilers|removed)/([0-9]+)`)

// withoutIndex takes the place in a message out of a complaint: the same
// complaint of the same reconciler is the same text in every message.
func withoutIndex(complaint string) string { return reconcilerIndex.ReplaceAllString(complaint, "") }

// blamed returns the place of the reconciler, or of the removal, that a
// problem's pointer names.
func blamed(pointer string) (list string, index int, ok bool) {
	m := reconcilerIndex.FindStringSubmatch(pointer)
	if len(m) != 3 || !strings.HasPrefix(pointer, m[0]) {
		return "", 0, false
	}
	index, err := strconv.Atoi(m[2])
	return m[1], index, err == nil
}

// size estimates a reconciler's JSON in bytes, rather too high: what JSON
// escapes counts as it may be written.
func size(r *schema.Reconciler) int {
	const members, member = 512, 16
	n := members
	text := func(texts ...string) {
		for _, s := range texts {
			n += member + len(s)
			for i := range len(s) {
				if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
					n += 5
				}
			}
		}
	}
	text(r.Kind, r.Namespace, r.Name, r.Cluster, r.Reason, r.Message, r.SourceRevision, r.SourceError, r.Health)
	for i := range r.Sources {
		s := &r.Sources[i]
		text(string(s.Type), s.URL, s.Ref, s.Path)
	}
	text(r.Attempted...)
	text(r.Applied...)
	text(r.Origin...)
	if r.Owner != nil {
		text(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name)
	}
	return n
}
