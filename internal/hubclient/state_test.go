package hubclient

import (
	"io"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfall-hub/landfall/schema"
)

// first returns the first row of a list, or its error.
func first[T any](rows iter.Seq2[T, error]) (T, error) {
	for row, err := range rows {
		return row, err
	}
	var none T
	return none, io.EOF
}

// TestRows holds what each list of rows asks, and that its row is read.
func TestRows(t *testing.T) {
	some := schema.StateFilter{Environment: "dev", Status: schema.StatusFailure}
	whole := schema.StateFilter{
		Environment: "e", Workspace: "w", Application: "a", Workload: "l", DeploymentTarget: "t", ClusterType: "y", Cluster: "c", Status: schema.StatusSuccess,
	}
	from := time.Date(2026, 11, 20, 10, 0, 0, 500e6, time.FixedZone("CET", 3600))
	span := schema.Span{From: from, To: from.Add(time.Hour)}
	const times = "from=2026-11-20T09%3A00%3A00.5Z&"
	ctx := t.Context()
	cases := map[string]struct {
		call func(*Client) (string, error)
		want string
	}{
		"clusters": {func(c *Client) (string, error) {
			row, err := first(c.ClusterStates(ctx, whole, 7))
			return row.Environment, err
		}, "/api/v1/state/clusters?application=a&cluster=c&cluster_type=y&deployment_target=t&environment=e&limit=7&status=success&workload=l&workspace=w"},
		"environments": {func(c *Client) (string, error) {
			row, err := first(c.EnvironmentStates(ctx, some, 0))
			return row.Environment, err
		}, "/api/v1/state?environment=dev&limit=1000&status=failure"},
		"history": {func(c *Client) (string, error) {
			row, err := first(c.History(ctx, schema.HistoryFilter{StateFilter: some, Span: span}, 2))
			return row.Environment, err
		}, "/api/v1/history?environment=dev&" + times + "limit=2&status=failure&to=2026-11-20T10%3A00%3A00.5Z"},
		"open history": {func(c *Client) (string, error) {
			row, err := first(c.History(ctx, schema.HistoryFilter{Span: schema.Span{From: from}}, 2))
			return row.Environment, err
		}, "/api/v1/history?" + times + "limit=2"},
		"discrepancies": {func(c *Client) (string, error) {
			row, err := first(c.Discrepancies(ctx, schema.DiscrepancyFilter{StateFilter: some, All: true}, 2))
			return row.Environments[0].Environment, err
		}, "/api/v1/discrepancies?all=true&environment=dev&limit=2&status=failure"},
		"drift": {func(c *Client) (string, error) {
			row, err := first(c.Drift(ctx, schema.DriftFilter{StateFilter: some, Span: schema.Span{From: from}, All: true}, 2))
			return row.Environment, err
		}, "/api/v1/drift?all=true&environment=dev&" + times + "limit=2&status=failure"},
		"assignments": {func(c *Client) (string, error) {
			row, err := first(c.Assignments(ctx, schema.AssignmentFilter{Environment: "e", ClusterType: "y", DeploymentTarget: "t", Workload: "l", Workspace: "w"}, 2))
			return row.Environment, err
		}, "/api/v1/assignments?cluster_type=y&deployment_target=t&environment=e&limit=2&workload=l&workspace=w"},
		"DORA": {func(c *Client) (string, error) {
			row, err := first(c.DORA(ctx, schema.DORAFilter{StateFilter: schema.StateFilter{Workload: "hello"}, Span: schema.Span{From: from}}, 2))
			return row.Environment, err
		}, "/api/v1/dora?" + times + "limit=2&workload=hello"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked string
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.String()
				io.WriteString(w, `{"items":[{"environment":"dev","environments":[{"environment":"dev"}]}],"next_cursor":""}`)
			})
			environment, err := tc.call(client)
			if err != nil || environment != "dev" {
				t.Errorf("the row is of %q, %v", environment, err)
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}
