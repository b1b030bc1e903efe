package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/landfall-hub/landfall/schema"
)

// cursor is where a page ended. Clients see it as an opaque text.
type cursor struct {
	List string   `json:"l"`
	Key  []string `json:"k"`
	// Filter ties the cursor to the question it answered.
	Filter string `json:"f"`
}

// formatCursor returns the cursor after the row of that key, "" for a nil key.
func formatCursor(name string, filter any, key []string) (string, error) {
	if key == nil {
		return "", nil
	}
	text, err := json.Marshal(cursor{List: name, Key: key, Filter: filterHash(filter)})
	if err != nil {
		return "", fmt.Errorf("writing a cursor of %s: %w", name, err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// parseCursor returns the key of a cursor that this list gave for this filter.
func parseCursor(text, name string, filter any) ([]string, error) {
	bad := blame(schema.CodeInvalidCursor, "cursor", "take next_cursor from an answer of this list, and repeat the same filters with it")
	plain, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, bad
	}
	var c cursor
	if err := json.Unmarshal(plain, &c, json.RejectUnknownMembers(true)); err != nil {
		return nil, bad
	}
	if c.List != name || c.Filter != filterHash(filter) || len(c.Key) == 0 {
		return nil, bad
	}
	return c.Key, nil
}

// filterHash is a short fingerprint of a filter: a struct of texts, times and flags.
func filterHash(filter any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", filter))
	return hex.EncodeToString(sum[:8])
}
