package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/landfall-hub/landfall/schema"
)

// AdminTokenFile is the name of the file in the data folder that holds the
// admin token of a hub that started without any.
const AdminTokenFile = "admin-token"

// Bootstrap makes sure that an admin can call: where no admin's token is in
// force it writes one to DataDir/admin-token, mode 0600, and stores it. A file
// that is there already is stored again unless its token was revoked, so that
// a start that was cut short is finished by the next. It returns the file's path
// if it is this token that is in force now for the first time, "" otherwise.
func (t *Tokens) Bootstrap(ctx context.Context) (path string, err error) {
	t.change.Lock()
	defer t.change.Unlock()
	if err := t.reread(ctx); err != nil {
		return "", fmt.Errorf("looking for an admin's token: %w", err)
	}
	return t.bootstrap(ctx)
}

// bootstrap is Bootstrap for those who hold t.change and have read the store.
func (t *Tokens) bootstrap(ctx context.Context) (path string, err error) {
	s := t.known.Load()
	if s.admins() > 0 {
		return "", nil
	}
	path = filepath.Join(t.dataDir, AdminTokenFile)
	bearer, r := t.newRecord(schema.TokenRequest{Name: "first start", Role: schema.RoleAdmin})
	kept, id, err := readBearer(path)
	switch {
	case err != nil:
		return "", err
	case kept != "" && !s.byID[id].Revoked:
		r.ID, r.Hash = id, sha256.Sum256([]byte(kept))
	default:
		if err := writePrivate(path, bearer+"\n"); err != nil {
			return "", fmt.Errorf("writing the admin token: %w", err)
		}
	}
	if err := t.store.PutToken(ctx, r); err != nil {
		return "", fmt.Errorf("storing the admin token of %s: %w", path, err)
	}
	t.put(r)
	return path, nil
}

// readBearer reads a token that an earlier start wrote; "" where there is none.
func readBearer(path string) (bearer, id string, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("reading the admin token: %w", err)
	}
	bearer = strings.TrimSpace(string(text))
	id, err = parseBearer(bearer)
	if err != nil {
		return "", "", fmt.Errorf("the file %s holds no token (%w); remove it and start again", path, err)
	}
	return bearer, id, os.Chmod(path, 0o600)
}

// writePrivate writes a file that only its owner reads, whole or not at all.
func writePrivate(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".admin-token-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
