package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

// Record is a token as it is stored: never its secret. The secret has 256
// random bits, so a plain SHA-256 of it cannot be guessed back.
type Record struct {
	ID      string
	Name    string
	Role    schema.Role
	Cluster string
	// Hash is the SHA-256 of the whole bearer text.
	Hash      [sha256.Size]byte
	CreatedAt time.Time
	Revoked   bool
}

// token describes the record in the API's words, without the secret.
func (r Record) token() schema.Token {
	return schema.Token{ID: r.ID, Name: r.Name, Role: r.Role, Cluster: r.Cluster, CreatedAt: r.CreatedAt}
}

// TokenStore keeps records. A change is visible to the next reading.
type TokenStore interface {
	// Tokens returns every record, revoked ones too.
	Tokens(ctx context.Context) ([]Record, error)
	// PutToken stores a new record; storing the same one again changes nothing.
	PutToken(ctx context.Context, r Record) error
	// RevokeToken marks the record of that id.
	RevokeToken(ctx context.Context, id string) error
}

// encoding is base32 in lower case: ids and secrets are marked by a double click.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const (
	idBytes     = 10
	secretBytes = 32
)

// newBearer returns a bearer text, lf_<id>_<random>, and its id.
func newBearer() (bearer, id string) {
	var b [idBytes + secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	id = encoding.EncodeToString(b[:idBytes])
	return "lf_" + id + "_" + encoding.EncodeToString(b[idBytes:]), id
}

// parseBearer returns the id of a bearer text.
func parseBearer(bearer string) (id string, err error) {
	parts := strings.Split(bearer, "_")
	if len(parts) != 3 || parts[0] != "lf" {
		return "", fmt.Errorf("a token is written lf_<id>_<random>")
	}
	if n, err := encoding.DecodeString(parts[1]); err != nil || len(n) != idBytes {
		return "", fmt.Errorf("a token's id has %d characters", encoding.EncodedLen(idBytes))
	}
	if n, err := encoding.DecodeString(parts[2]); err != nil || len(n) != secretBytes {
		return "", fmt.Errorf("a token's secret has %d characters", encoding.EncodedLen(secretBytes))
	}
	return parts[1], nil
}
