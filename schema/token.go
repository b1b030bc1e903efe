package schema

import (
	"slices"
	"time"
)

// Role says what the bearer of a token may do.
type Role string

// The roles.
const (
	// RoleAgent writes its own cluster, and those in its reports_for.
	RoleAgent Role = "agent"
	// RoleReader reads.
	RoleReader Role = "reader"
	// RolePipeline asks for verdicts, pushes descriptors, moves promotions.
	RolePipeline Role = "pipeline"
	// RoleAdmin may do everything.
	RoleAdmin Role = "admin"
)

// Roles lists every role.
func Roles() []Role { return []Role{RoleAgent, RoleReader, RolePipeline, RoleAdmin} }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// TokenRequest asks for a new token.
type TokenRequest struct {
	// Name says in people's words what the token is for; it may be empty.
	Name string `json:"name,omitempty"`
	Role Role   `json:"role"`
	// Cluster is the one cluster that an agent's token may write; only there.
	Cluster string `json:"cluster,omitempty"`
}

// Token describes a token. Its secret is shown once, when it is made.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      Role      `json:"role"`
	Cluster   string    `json:"cluster"`
	CreatedAt time.Time `json:"created_at"`
	// Secret is the bearer token itself, present only in the answer to its making.
	Secret string `json:"token,omitempty"`
}
