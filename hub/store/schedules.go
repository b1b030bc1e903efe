package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// PutSchedules stores what the scheduler decided. Of two writings of one
// assignment the later one holds.
func (s *Store) PutSchedules(ctx context.Context, rows []record.Schedule) error {
	configs, violations := make([]string, len(rows)), make([]string, len(rows))
	for i := range rows {
		config, err := json.Marshal(rows[i].Config)
		if err != nil {
			return fmt.Errorf("writing a configuration: %w", err)
		}
		found, err := json.Marshal(rows[i].Violations)
		if err != nil {
			return fmt.Errorf("writing what schemas object to: %w", err)
		}
		configs[i], violations[i] = string(config), string(found)
	}
	text := func(of func(*record.Schedule) string) []string { return pick(rows, of) }
	return s.insert(ctx, tables.Schedules, len(rows), columnsOf{
		"environment":          text(func(r *record.Schedule) string { return r.Environment }),
		"cluster_type":         text(func(r *record.Schedule) string { return r.ClusterType }),
		"deployment_target":    text(func(r *record.Schedule) string { return r.DeploymentTarget }),
		"target":               text(func(r *record.Schedule) string { return r.Target }),
		"workspace":            text(func(r *record.Schedule) string { return r.Workspace }),
		"workload":             text(func(r *record.Schedule) string { return r.Workload }),
		"policies":             pick(rows, func(r *record.Schedule) []string { return r.Policies }),
		"config_version":       text(func(r *record.Schedule) string { return r.ConfigVersion }),
		"config":               configs,
		"files":                pick(rows, func(r *record.Schedule) []string { return r.Files }),
		"violations":           violations,
		"error":                text(func(r *record.Schedule) string { return r.Error }),
		"repo":                 text(func(r *record.Schedule) string { return r.Endpoint.Repo }),
		"ref":                  text(func(r *record.Schedule) string { return r.Endpoint.Ref }),
		"path":                 text(func(r *record.Schedule) string { return r.Endpoint.Path }),
		"written_repo":         text(func(r *record.Schedule) string { return r.Repo }),
		"written_ref":          text(func(r *record.Schedule) string { return r.Ref }),
		"written_path":         text(func(r *record.Schedule) string { return r.Path }),
		"control_plane":        text(func(r *record.Schedule) string { return r.ControlPlane }),
		"control_plane_commit": text(func(r *record.Schedule) string { return r.ControlPlaneCommit }),
		"base_commit":          text(func(r *record.Schedule) string { return r.BaseCommit }),
		"gitops_repo":          text(func(r *record.Schedule) string { return r.GitOpsRepo }),
		"gitops_ref":           text(func(r *record.Schedule) string { return r.GitOpsRef }),
		"gitops_commit":        text(func(r *record.Schedule) string { return r.GitOpsCommit }),
		"planned_at":           pick(rows, func(r *record.Schedule) int64 { return stored(r.PlannedAt) }),
		"digest":               text(func(r *record.Schedule) string { return hex.EncodeToString(r.Digest[:]) }),
		"deleted":              pick(rows, func(r *record.Schedule) uint8 { return flag(r.Gone) }),
		"version":              same(len(rows), uint64(time.Now().UnixMicro())),
	})
}

// Scheduled reads what a hub must remember of all assignments that there are.
func (s *Store) Scheduled(ctx context.Context) ([]record.Scheduled, error) {
	var all []record.Scheduled
	err := s.query(ctx, "scheduled", `
		SELECT environment, cluster_type, deployment_target, repo, ref, path, gitops_repo, gitops_ref, digest
		FROM {db}.schedules FINAL WHERE deleted = 0 ORDER BY environment, cluster_type, deployment_target`,
		func(r driver.Rows) error {
			var x record.Scheduled
			var digest string
			err := r.Scan(&x.Environment, &x.ClusterType, &x.DeploymentTarget, &x.Endpoint.Repo, &x.Endpoint.Ref, &x.Endpoint.Path, &x.GitOps.Repo, &x.GitOps.Ref, &digest)
			// One that cannot be read is none: the row is written again.
			if sum, bad := hex.DecodeString(digest); bad == nil && len(sum) == len(x.Digest) {
				x.Digest = record.ScheduleDigest(sum)
			}
			all = append(all, x)
			return err
		})
	return all, err
}

// scheduleKey is how many columns name an assignment.
const scheduleKey = 3

// scheduleColumns are those of an assignment in a list.
const scheduleColumns = `environment, cluster_type, deployment_target, target, workspace, workload, policies, config_version, error,
	written_repo, written_ref, written_path, control_plane, control_plane_commit, base_commit, gitops_repo, gitops_ref, gitops_commit, planned_at`

func scheduleFields(a *schema.Assignment) []any {
	return []any{
		&a.Environment, &a.ClusterType, &a.DeploymentTarget, &a.Target, &a.Workspace, &a.Workload, &a.Policies, &a.ConfigVersion, &a.Error,
		&a.Repo, &a.Ref, &a.Path, &a.ControlPlane, &a.ControlPlaneCommit, &a.BaseCommit, &a.GitOpsRepo, &a.GitOpsRef, &a.GitOpsCommit, &a.PlannedAt,
	}
}

// ScheduledPage reads assignments in the order of environment, cluster type and
// deployment target.
func (s *Store) ScheduledPage(ctx context.Context, f schema.AssignmentFilter, after []string, limit int) ([]schema.Assignment, error) {
	if len(after) != 0 && len(after) != scheduleKey {
		return nil, fmt.Errorf("a page after %d columns: there are %d", len(after), scheduleKey)
	}
	c := where("deleted = 0")
	for _, part := range []struct{ column, value string }{
		{"environment", f.Environment}, {"cluster_type", f.ClusterType}, {"workload", f.Workload}, {"workspace", f.Workspace},
	} {
		if part.value != "" {
			c.and(part.column+" = ?", part.value)
		}
	}
	if f.DeploymentTarget != "" {
		c.and("(deployment_target = ? OR target = ?)", f.DeploymentTarget, f.DeploymentTarget)
	}
	if len(after) > 0 {
		c.and("(environment, cluster_type, deployment_target) > (?, ?, ?)", after[0], after[1], after[2])
	}
	var rows []schema.Assignment
	err := s.query(ctx, "schedules", "SELECT "+scheduleColumns+" FROM {db}.schedules FINAL WHERE "+c.text+
		" ORDER BY environment, cluster_type, deployment_target LIMIT "+fmt.Sprint(limit),
		func(r driver.Rows) error {
			var a schema.Assignment
			err := r.Scan(scheduleFields(&a)...)
			a.PlannedAt = restored(a.PlannedAt)
			rows = append(rows, a)
			return err
		}, c.args...)
	return rows, err
}

// ScheduledDetail reads one assignment; ok is false where there is none.
func (s *Store) ScheduledDetail(ctx context.Context, k record.ScheduleKey) (d schema.AssignmentDetail, ok bool, err error) {
	err = s.query(ctx, "schedule", "SELECT "+scheduleColumns+`, files, config, violations FROM {db}.schedules FINAL
		WHERE deleted = 0 AND environment = ? AND cluster_type = ? AND deployment_target = ?`,
		func(r driver.Rows) error {
			var config, violations string
			if err := r.Scan(append(scheduleFields(&d.Assignment), &d.Files, &config, &violations)...); err != nil {
				return err
			}
			d.PlannedAt, ok = restored(d.PlannedAt), true
			return errors.Join(json.Unmarshal([]byte(config), &d.Config), json.Unmarshal([]byte(violations), &d.Violations))
		}, k.Environment, k.ClusterType, k.DeploymentTarget)
	return d, ok, err
}
