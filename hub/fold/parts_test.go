package fold

import (
	"testing"

	"github.com/landfall-hub/landfall/schema"
)

// Before each case a, b and c are known, of Kustomization, and h, of HelmRelease.
func TestSnapshotInParts(t *testing.T) {
	a, b, c, n := kustomization("a"), kustomization("b"), kustomization("c"), kustomization("n")
	all := set("Kustomization/a", "Kustomization/b", "Kustomization/c", "HelmRelease/h")
	other := func(r *schema.Report) *schema.Report { r.Epoch = 2; return r }
	cases := map[string]struct {
		reason  string
		reports []*schema.Report
		left    map[string]bool
	}{
		"Complete": {
			"What no part holds is gone when the last is folded.",
			[]*schema.Report{part(2, 1, 3, kustomizations, a), part(3, 2, 3, kustomizations, n), part(4, 3, 3, kustomizations, b)},
			set("Kustomization/a", "Kustomization/b", "Kustomization/n", "HelmRelease/h"),
		},
		"NotYet": {
			"Before the last part nothing is gone.",
			[]*schema.Report{part(2, 1, 3, kustomizations, a), part(3, 2, 3, kustomizations)},
			all,
		},
		"EmptyLastPart": {
			"The last part may be empty.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), part(3, 2, 2, kustomizations)},
			set("Kustomization/a", "HelmRelease/h"),
		},
		"MissingPart": {
			"A set without its middle removes nothing.",
			[]*schema.Report{part(2, 1, 3, kustomizations, a), part(4, 3, 3, kustomizations, b)},
			all,
		},
		"MissingFirst": {
			"A set without its first part removes nothing.",
			[]*schema.Report{part(3, 2, 2, kustomizations, a)},
			all,
		},
		"GapInSequence": {
			"Something stood between the parts.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), part(4, 2, 2, kustomizations, b)},
			all,
		},
		"DeltaBetween": {
			"Parts carry consecutive sequences with nothing between.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), delta(3, n), part(4, 2, 2, kustomizations, b)},
			set("Kustomization/a", "Kustomization/b", "Kustomization/c", "Kustomization/n", "HelmRelease/h"),
		},
		"Backwards": {
			"Parts in another order are no set.",
			[]*schema.Report{part(2, 2, 3, kustomizations, a), part(3, 1, 3, kustomizations), part(4, 3, 3, kustomizations, b)},
			all,
		},
		"OtherKinds": {
			"Parts of one set cover the same kinds.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), part(3, 2, 2, []string{"HelmRelease", "Kustomization"}, b)},
			all,
		},
		"SameKindsOtherOrder": {
			"The order of kinds says nothing.",
			[]*schema.Report{part(2, 1, 2, []string{"HelmRelease", "Kustomization"}, a), part(3, 2, 2, []string{"Kustomization", "HelmRelease", "Kustomization"})},
			set("Kustomization/a"),
		},
		"OtherCount": {
			"Parts of one set agree on how many there are.",
			[]*schema.Report{part(2, 1, 3, kustomizations, a), part(3, 2, 2, kustomizations, b)},
			all,
		},
		"OtherEpoch": {
			"Another session does not finish what the one before began.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), other(part(3, 2, 2, kustomizations, b))},
			all,
		},
		"BeginsAgain": {
			"A first part begins a new set.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), part(3, 1, 2, kustomizations, b), part(4, 2, 2, kustomizations, c)},
			set("Kustomization/b", "Kustomization/c", "HelmRelease/h"),
		},
		"WholeBetween": {
			"A whole snapshot between ends the set; what it held stays.",
			[]*schema.Report{part(2, 1, 2, kustomizations, a), snapshot(3, kustomizations, a, b), part(4, 2, 2, kustomizations, c)},
			set("Kustomization/a", "Kustomization/b", "Kustomization/c", "HelmRelease/h"),
		},
		"AfterBrokenSet": {
			"After a broken set a whole one works.",
			[]*schema.Report{part(2, 2, 2, kustomizations, a), part(3, 1, 2, kustomizations, a), part(4, 2, 2, kustomizations, b)},
			set("Kustomization/a", "Kustomization/b", "HelmRelease/h"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewState()
			tell(t, s, delta(1, a, b, c, kustomization("h", ofKind("HelmRelease"))))
			for _, r := range tc.reports {
				tell(t, s, r)
			}
			diff(t, tc.reason, tc.left, names(s))
		})
	}
}

// The mark that a part leaves is what a restarted hub goes by, so it must be
// written though nothing changed.
func TestPartsAreWrittenThoughNothingChanged(t *testing.T) {
	s := NewState()
	tell(t, s, delta(1, kustomization("a")))
	c := tell(t, s, part(2, 1, 2, kustomizations, kustomization("a")))
	changed, unchanged := upserts(c)
	diff(t, "changed", []string(nil), changed)
	diff(t, "written", []string{"a"}, unchanged)
	if v := c.Upserts[0].Entry.Version; v != schema.Version(1, 2) {
		t.Errorf("its mark is %d", v)
	}
	c = tell(t, s, snapshot(3, kustomizations, kustomization("a")))
	if len(c.Upserts) != 0 {
		t.Error("a whole snapshot wrote what did not change")
	}
}
