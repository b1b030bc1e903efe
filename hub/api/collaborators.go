package api

import (
	"context"

	"github.com/landfall-hub/landfall/schema"
)

// Every error that these interfaces return is an *schema.Invalid (400, with a
// pointer), a *schema.Refusal (the status of its code), a context's error (503)
// or a fault of the hub's own (500, its text only in the log).

// Ingester takes what agents send. Messages come validated and normalized.
type Ingester interface {
	// Register issues the next epoch of the cluster, and brings a decommissioned
	// one back: the API lets only admins do that.
	Register(ctx context.Context, cluster string, r schema.Registration) (epoch uint64, err error)
	// Report returns after the report is stored.
	Report(ctx context.Context, cluster string, r *schema.Report) (currentEpoch uint64, err error)
	Heartbeat(ctx context.Context, cluster string, h schema.Heartbeat) (schema.HeartbeatAnswer, error)
	// Decommission takes the cluster out of verdicts; not_found if it never registered.
	Decommission(ctx context.Context, cluster string) error
}

// Gate answers whether a commit may go on.
type Gate interface {
	Ask(ctx context.Context, q schema.Question) (schema.Verdict, error)
	// Next blocks until the verdict is no longer SameAs seen, or ctx ends; in
	// both cases it returns the verdict of that moment.
	Next(ctx context.Context, q schema.Question, seen schema.Verdict) (schema.Verdict, error)
}

// Fleet reads what is stored. Next is the key of the last row of the page, nil
// where no row follows; it comes back as Page.After. A key can be forged: one
// that Fleet cannot have made is an invalid_cursor Refusal.
type Fleet interface {
	Clusters(ctx context.Context, f schema.ClusterFilter, p schema.Page) (rows []schema.Cluster, next []string, err error)
	// Cluster is a not_found Refusal where there is none of that name.
	Cluster(ctx context.Context, name string) (schema.Cluster, error)
}

// Overview reads what runs where and what ran, with names; pages as in Fleet.
type Overview interface {
	EnvironmentStates(ctx context.Context, f schema.StateFilter, p schema.Page) (rows []schema.EnvironmentState, next []string, err error)
	ClusterStates(ctx context.Context, f schema.StateFilter, p schema.Page) (rows []schema.ClusterState, next []string, err error)
	History(ctx context.Context, f schema.HistoryFilter, p schema.Page) (rows []schema.HistoryEntry, next []string, err error)
}

// Figures compare what runs with what should; pages as in Fleet.
type Figures interface {
	Discrepancies(ctx context.Context, f schema.DiscrepancyFilter, p schema.Page) (rows []schema.Discrepancy, next []string, err error)
	Drift(ctx context.Context, f schema.DriftFilter, p schema.Page) (rows []schema.Drift, next []string, err error)
	DORA(ctx context.Context, f schema.DORAFilter, p schema.Page) (rows []schema.DORA, next []string, err error)
}

// Descriptors takes the documents that say what a commit brings.
type Descriptors interface {
	// Push stores the descriptors in a body, which name what a commit of a
	// repository and ref brings: all of them, or none and a *schema.Problem. The
	// next question knows them.
	Push(ctx context.Context, at schema.Endpoint, commit string, body []byte) (schema.PushedDescriptors, error)
}

// Assignments reads what the scheduler decided; pages as in Fleet.
type Assignments interface {
	Assignments(ctx context.Context, f schema.AssignmentFilter, p schema.Page) (rows []schema.Assignment, next []string, err error)
	// Assignment is a not_found Refusal where there is none of that name.
	Assignment(ctx context.Context, environment, clusterType, target string) (schema.AssignmentDetail, error)
}

// Tokens knows who may call.
type Tokens interface {
	// Required reports whether calls need a token. It is an unavailable Refusal
	// as long as nobody can know.
	Required(ctx context.Context) (bool, error)
	// Authenticate returns the token whose secret bearer is, without the secret;
	// an unauthenticated Refusal for any other text.
	Authenticate(ctx context.Context, bearer string) (schema.Token, error)
	// Create makes a token and returns it with its secret.
	Create(ctx context.Context, r schema.TokenRequest) (schema.Token, error)
	// List returns the tokens in force, sorted by id, without secrets.
	List(ctx context.Context) ([]schema.Token, error)
	// Revoke is a not_found Refusal where no token in force has that id.
	Revoke(ctx context.Context, id string) error
}

// Check is the state of one thing that the hub needs or uses, as /readyz shows it.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Minor says that the hub is ready without it.
	Minor bool `json:"-"`
}
