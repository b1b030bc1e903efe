package record

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Token is a stored token: its hash, never its secret.
type Token struct {
	ID, Name  string
	Role      schema.Role
	Cluster   string
	Hash      [32]byte
	CreatedAt time.Time
	Revoked   bool
}
