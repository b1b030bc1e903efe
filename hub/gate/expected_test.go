package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// expecting is what somebody expects of every endpoint.
type expecting []record.Expected

func (e expecting) Expected(at schema.Endpoint, _ []string) []record.Expected {
	var all []record.Expected
	for _, x := range e {
		if schema.PathWithin(at.Path, x.Path) {
			all = append(all, x)
		}
	}
	return all
}

func TestClustersThatShouldReadAndNeverSaidSo(t *testing.T) {
	folder := func(clusterType, path string) record.Expected {
		return record.Expected{Environment: "dev", ClusterType: clusterType, Path: path, Name: "target"}
	}
	cases := map[string]struct {
		reason   string
		expected expecting
		change   func(r *rig)
		// missing are the clusters that are pending because they never reported.
		missing []string
		total   int
		state   schema.State
	}{
		"nobody": {
			reason: "what nobody expects is as before", state: schema.Passed, total: 1,
		},
		"silent one": {
			reason:   "one of two clusters reports, and the other one is waited for",
			expected: expecting{folder("type-of-c1", "drone"), folder("type-of-c2", "drone")}, missing: []string{"c2"}, total: 2, state: schema.Waiting,
		},
		"both": {
			reason:   "who reports is not expected twice",
			expected: expecting{folder("type-of-c1", "drone"), folder("type-of-c2", "drone")},
			change:   func(r *rig) { r.store.says("c2", "c2", commitA, schema.StatusSuccess) }, total: 2, state: schema.Passed,
		},
		"another environment": {
			reason:   "the type alone does not make a member",
			expected: expecting{{Environment: "prod", ClusterType: "type-of-c2", Path: "drone"}}, total: 1, state: schema.Passed,
		},
		"another folder": {
			reason:   "it reads one of two folders that it should",
			expected: expecting{folder("type-of-c1", "drone"), folder("type-of-c1", "drone/more")}, total: 1, state: schema.Passed,
		},
		"below only": {
			reason:   "a reader of a part does not read the whole",
			expected: expecting{folder("type-of-c2", "drone")},
			change: func(r *rig) {
				r.store.says("c2", "c2", commitA, schema.StatusSuccess)
				r.store.subs[1].Sources[0].Path = "drone/part"
			},
			missing: []string{"c2"}, total: 3, state: schema.Waiting,
		},
		"above what is asked": {
			reason: "what is asked for is below the folder that it should read", expected: expecting{folder("type-of-c2", "")}, total: 1, state: schema.Passed,
		},
		"decommissioned": {
			reason: "one that is gone is not waited for", expected: expecting{folder("type-of-c2", "drone")},
			change: func(r *rig) {
				if _, err := r.fleet.Decommission(r.t.Context(), "c2"); err != nil {
					r.t.Fatal(err)
				}
			},
			total: 1, state: schema.Passed,
		},
		"reported for": {
			reason: "another cluster's agent reports for it, and reads the folder", expected: expecting{folder("type-of-c2", "drone")},
			change: func(r *rig) {
				r.registerFor("c1", "c2")
			},
			total: 1, state: schema.Passed,
		},
		"destination": {
			reason: "another cluster's reconciler deploys to it", expected: expecting{folder("type-of-c2", "drone")},
			change: func(r *rig) { r.store.says("c1", "c2", commitA, schema.StatusSuccess) }, total: 1, state: schema.Passed,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, false, func(t *testing.T, r *rig) {
				r.store.says("c1", "c1", commitA, schema.StatusSuccess)
				r.expect(c.expected)
				if c.change != nil {
					c.change(r)
				}
				v := r.ask(question())
				var missing []string
				for _, u := range v.Unfinished {
					if u.Reconciler != "Expected/dev/target" || u.Verdict != schema.OutcomePending || u.Reason != "never reported" {
						t.Errorf("%s: unfinished is %+v", c.reason, u)
					}
					missing = append(missing, u.Cluster)
				}
				if diff := cmp.Diff(c.missing, missing); diff != "" || v.Counts.Total != c.total || v.State != c.state {
					t.Errorf("%s: state %s, counts %+v, missing (-want +got):\n%s", c.reason, v.State, v.Counts, diff)
				}
			})
		})
	}
}

func TestWhoWaitsHearsOfExpectations(t *testing.T) {
	inBubble(t, false, func(t *testing.T, r *rig) {
		r.store.says("c1", "c1", commitA, schema.StatusSuccess)
		seen := r.ask(question())
		answers := r.next(t.Context(), question(), seen)
		r.gate.opts.Expectations = expecting{{Environment: "dev", ClusterType: "type-of-c2", Path: "drone", Name: "target"}}
		r.gate.ExpectationsChanged()
		if a := <-answers; a.err != nil || a.State != schema.Waiting || a.Counts.Pending != 1 {
			t.Errorf("the verdict is %+v, %v", a.Verdict, a.err)
		}
	})
}

// expect restarts the gate with somebody who expects something.
func (r *rig) expect(e expecting) {
	r.t.Helper()
	r.restart()
	if e != nil {
		r.gate.opts.Expectations = e
	}
}

// registerFor has a cluster registered anew, as one that reports for another.
func (r *rig) registerFor(name, other string) {
	r.t.Helper()
	if _, err := r.fleet.Register(r.t.Context(), name, schema.Registration{
		Kind: schema.ClusterKubernetes, HeartbeatInterval: schema.DefaultHeartbeatInterval, ReportsFor: []string{other},
		Memberships: []schema.Membership{{Environment: "dev", Type: "type-of-" + name}},
	}); err != nil {
		r.t.Fatal(err)
	}
}
