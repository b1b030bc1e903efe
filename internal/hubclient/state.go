package hubclient

import (
	"context"
	"iter"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// ClusterStates lists what each reconciler runs, pageSize rows at a time (see
// pages).
func (c *Client) ClusterStates(ctx context.Context, f schema.StateFilter, pageSize int) iter.Seq2[schema.ClusterState, error] {
	return rows[schema.ClusterState](ctx, c, "/state/clusters", pageSize, f, schema.Span{}, false)
}

// EnvironmentStates lists what should run of each deployment target, and what
// does, pageSize rows at a time (see pages).
func (c *Client) EnvironmentStates(ctx context.Context, f schema.StateFilter, pageSize int) iter.Seq2[schema.EnvironmentState, error] {
	return rows[schema.EnvironmentState](ctx, c, "/state", pageSize, f, schema.Span{}, false)
}

// History lists the changes that were reported, the newest first, pageSize rows
// at a time (see pages).
func (c *Client) History(ctx context.Context, f schema.HistoryFilter, pageSize int) iter.Seq2[schema.HistoryEntry, error] {
	return rows[schema.HistoryEntry](ctx, c, "/history", pageSize, f.StateFilter, f.Span, false)
}

// Discrepancies lists the deployment targets that are not the same in all
// environments, pageSize rows at a time (see pages).
func (c *Client) Discrepancies(ctx context.Context, f schema.DiscrepancyFilter, pageSize int) iter.Seq2[schema.Discrepancy, error] {
	return rows[schema.Discrepancy](ctx, c, "/discrepancies", pageSize, f.StateFilter, schema.Span{}, f.All)
}

// Drift lists the reconcilers that do not run what is desired, pageSize rows at
// a time (see pages).
func (c *Client) Drift(ctx context.Context, f schema.DriftFilter, pageSize int) iter.Seq2[schema.Drift, error] {
	return rows[schema.Drift](ctx, c, "/drift", pageSize, f.StateFilter, f.Span, f.All)
}

// DORA lists the four figures of each deployment target, pageSize rows at a time
// (see pages).
func (c *Client) DORA(ctx context.Context, f schema.DORAFilter, pageSize int) iter.Seq2[schema.DORA, error] {
	return rows[schema.DORA](ctx, c, "/dora", pageSize, f.StateFilter, f.Span, false)
}

// Assignments lists what the scheduler decided, pageSize assignments at a time
// (see pages).
func (c *Client) Assignments(ctx context.Context, f schema.AssignmentFilter, pageSize int) iter.Seq2[schema.Assignment, error] {
	return rows[schema.Assignment](ctx, c, "/assignments", pageSize, schema.StateFilter{
		Environment: f.Environment, Workspace: f.Workspace, Workload: f.Workload, DeploymentTarget: f.DeploymentTarget, ClusterType: f.ClusterType,
	}, schema.Span{}, false)
}

// rows asks for a list with everything that a filter may have; zero members are
// left out.
func rows[T any](ctx context.Context, c *Client, path string, pageSize int, f schema.StateFilter, s schema.Span, all bool) iter.Seq2[T, error] {
	query := filter(
		"environment", f.Environment, "workspace", f.Workspace, "application", f.Application, "workload", f.Workload,
		"deployment_target", f.DeploymentTarget, "cluster_type", f.ClusterType, "cluster", f.Cluster, "status", string(f.Status),
		"from", instant(s.From), "to", instant(s.To))
	if all {
		query.Set("all", "true")
	}
	return pages[T](ctx, c, apiPrefix+path, query, pageSize)
}

// instant writes a time as the API takes it; zero is none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
