package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

// writeFile replaces a file by what v is as JSON, all of it or nothing.
func writeFile(file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// readFile reads what writeFile wrote, and leaves v as it is where there is
// nothing to be read: all that is kept in files can be found out again, and costs
// a question or a word said twice.
func readFile(file string, v any) {
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, v)
	}
}

// fileOf returns a file of an environment, whose name may be of any letters.
func (c *Control) fileOf(what, environment string) string {
	sum := sha256.Sum256([]byte(environment))
	return filepath.Join(c.opts.Dir, what+"-"+hex.EncodeToString(sum[:8])+".json")
}
