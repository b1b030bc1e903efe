package record

import (
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Token is a token as it is stored: never its secret. The secret has 256
// random bits, so a plain SHA-256 of it cannot be guessed back.
type Token struct {
	ID, Name string
	Role     schema.Role
	Cluster  string
	// Hash is the SHA-256 of the whole bearer text.
	Hash      [32]byte
	CreatedAt time.Time
	Revoked   bool
}
