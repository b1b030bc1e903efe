package auth

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// described is a stored token in the API's words, without its hash.
func described(r record.Token) schema.Token {
	return schema.Token{ID: r.ID, Name: r.Name, Role: r.Role, Cluster: r.Cluster, CreatedAt: r.CreatedAt}
}

// TokenStore keeps tokens. A change is visible to the next reading.
type TokenStore interface {
	// Tokens returns every token, revoked ones too.
	Tokens(ctx context.Context) ([]record.Token, error)
	// PutToken stores a new token; storing the same one again changes nothing.
	PutToken(ctx context.Context, r record.Token) error
	// RevokeToken marks the token of that id.
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
