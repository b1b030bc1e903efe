package store

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

func scheduled(environment, clusterType, target string) record.Schedule {
	var r record.Schedule
	r.Environment, r.ClusterType, r.DeploymentTarget, r.Target = environment, clusterType, target, "short-"+target
	r.Policies, r.Files, r.Config, r.Violations = []string{"all"}, []string{"reconciler.yaml"}, []schema.ConfigValue{}, []schema.ConfigProblem{}
	r.PlannedAt = start
	r.Digest[0] = 1
	return r
}

func TestSchedules(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	var rows []record.Schedule
	for _, environment := range []string{"dev", "stage"} {
		for _, clusterType := range []string{"drone", "large"} {
			for _, target := range []string{"hello-a", "hello-b"} {
				rows = append(rows, scheduled(environment, clusterType, target))
			}
		}
	}
	if err := s.PutSchedules(ctx, rows); err != nil {
		t.Fatal(err)
	}
	// A page at a time, each row once and in order.
	var all []schema.Assignment
	var after []string
	for {
		page, err := s.ScheduledPage(ctx, schema.AssignmentFilter{}, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		last := page[len(page)-1]
		after = []string{last.Environment, last.ClusterType, last.DeploymentTarget}
	}
	var want []schema.Assignment
	for _, r := range rows {
		want = append(want, r.Assignment)
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("all pages (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		filter schema.AssignmentFilter
		want   int
	}{
		"environment":  {schema.AssignmentFilter{Environment: "dev"}, 4},
		"cluster type": {schema.AssignmentFilter{ClusterType: "large"}, 4},
		"target":       {schema.AssignmentFilter{DeploymentTarget: "hello-a"}, 4},
		"short target": {schema.AssignmentFilter{DeploymentTarget: "short-hello-a", Environment: "dev"}, 2},
		"nobody":       {schema.AssignmentFilter{Workspace: "x"}, 0},
		"no workload":  {schema.AssignmentFilter{Workload: "x"}, 0},
	} {
		if got, err := s.ScheduledPage(ctx, c.filter, nil, 100); err != nil || len(got) != c.want {
			t.Errorf("%s: %d rows, %v; want %d", name, len(got), err, c.want)
		}
	}
	if _, err := s.ScheduledPage(ctx, schema.AssignmentFilter{}, []string{"a"}, 1); err == nil {
		t.Error("a page after a part of a key is a page")
	}

	// What is gone is in no list, and comes back.
	key := rows[0].Key()
	for _, gone := range []bool{true, false} {
		row := rows[0]
		row.Gone = gone
		if err := s.PutSchedules(ctx, []record.Schedule{row}); err != nil {
			t.Fatal(err)
		}
		kept, err := s.Scheduled(ctx)
		if err != nil || (len(kept) == len(rows)) == gone {
			t.Errorf("gone %v: %d are kept, %v", gone, len(kept), err)
		}
		if _, ok, err := s.ScheduledDetail(ctx, key); err != nil || ok == gone {
			t.Errorf("gone %v: it is there: %v, %v", gone, ok, err)
		}
	}
}

func TestScheduledDetailsSurvive(t *testing.T) {
	s := open(t)
	var rows []record.Schedule
	for i, odd := range oddNames {
		r := scheduled("dev", odd, odd)
		r.Workspace, r.Workload, r.Policies, r.Files = odd, odd, []string{odd, "b"}, []string{odd}
		r.Error, r.Repo, r.Ref, r.Path = odd, odd, odd, odd
		r.ConfigVersion, r.ControlPlane, r.ControlPlaneCommit, r.BaseCommit = odd, odd, commitA, commitA
		r.GitOpsRepo, r.GitOpsRef, r.GitOpsCommit = odd, odd, commitA
		r.Endpoint = schema.Endpoint{Repo: odd, Ref: odd, Path: odd}
		r.GitOps = schema.Endpoint{Repo: odd, Ref: odd}
		r.Digest[1] = byte(i)
		r.Config = []schema.ConfigValue{{Key: odd, Value: odd + "\nline", ConfigMap: odd, Place: "a.yaml:1", Overridden: []string{odd}}}
		r.Violations = []schema.ConfigProblem{{Key: odd, Schema: odd, ConfigMap: odd, Place: odd, Message: odd}}
		rows = append(rows, r)
	}
	if err := s.PutSchedules(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	kept, err := s.Scheduled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[record.ScheduleKey]record.Scheduled{}
	for _, k := range kept {
		byKey[k.ScheduleKey] = k
	}
	for i := range rows {
		r := &rows[i]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			got, ok, err := s.ScheduledDetail(t.Context(), r.Key())
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if diff := cmp.Diff(r.AssignmentDetail, got); diff != "" {
				t.Errorf("detail (-want +got):\n%s", diff)
			}
			want := record.Scheduled{ScheduleKey: r.Key(), Endpoint: r.Endpoint, GitOps: r.GitOps, Digest: r.Digest}
			if diff := cmp.Diff(want, byKey[r.Key()]); diff != "" {
				t.Errorf("what a hub remembers (-want +got):\n%s", diff)
			}
		})
	}
}
