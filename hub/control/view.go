package control

import (
	"context"
	"fmt"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// Assignments lists what the scheduler decided, by environment, cluster type and
// deployment target. The key of a page is that of its last row.
func (c *Control) Assignments(ctx context.Context, f schema.AssignmentFilter, p schema.Page) (rows []schema.Assignment, next []string, err error) {
	if len(p.After) != 0 && len(p.After) != 3 {
		return nil, nil, &schema.Refusal{Code: schema.CodeInvalidCursor, Detail: "this list never gave that cursor; begin again without one"}
	}
	rows, err = c.opts.Store.ScheduledPage(ctx, f, p.After, p.Limit+1)
	if err != nil {
		return nil, nil, unavailable(ctx, err)
	}
	if len(rows) > p.Limit {
		rows = rows[:p.Limit]
		last := rows[p.Limit-1]
		next = []string{last.Environment, last.ClusterType, last.DeploymentTarget}
	}
	return rows, next, nil
}

// Assignment describes one of them. The error is a not_found Refusal where there
// is none.
func (c *Control) Assignment(ctx context.Context, environment, clusterType, target string) (schema.AssignmentDetail, error) {
	d, ok, err := c.opts.Store.ScheduledDetail(ctx, record.ScheduleKey{Environment: environment, ClusterType: clusterType, DeploymentTarget: target})
	switch {
	case err != nil:
		return d, unavailable(ctx, err)
	case !ok:
		return d, &schema.Refusal{Code: schema.CodeNotFound, Detail: fmt.Sprintf(
			"%q is not assigned to %q in %q; GET /api/v1/assignments lists what is", target, clusterType, environment)}
	}
	return d, nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &schema.Refusal{Code: schema.CodeUnavailable, Detail: "ClickHouse does not answer now; try again", Err: err}
}
