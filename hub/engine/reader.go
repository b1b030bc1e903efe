package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// ReaderUser is the one user that readers from outside log in as.
const ReaderUser = "reader"

// Reader is a second address of the engine, for Grafana, curl and the like:
// read-only, with a password of its own, and with nothing in sight but Tables.
type Reader struct {
	// Listen is host and port.
	Listen string
	// Password of ReaderUser, one line. See ReadPassword.
	Password string
	// Database holds the tables.
	Database string
	// Tables and views that may be read.
	Tables []string
}

func (r *Reader) validate() error {
	if _, _, err := net.SplitHostPort(r.Listen); err != nil {
		return fmt.Errorf("the readers' address is host:port, not %q", r.Listen)
	}
	if r.Password == "" || strings.ContainsAny(r.Password, "\r\n\x00") {
		return errors.New("the readers' password is one line of text")
	}
	if r.Database == "" || len(r.Tables) == 0 {
		return errors.New("readers need a database and tables")
	}
	return nil
}

func (r *Reader) args() []string {
	return []string{
		"--reader-listen", r.Listen, "--reader-database", r.Database, "--reader-tables", strings.Join(r.Tables, ","),
	}
}

// maxPassword bounds a password file, in bytes: one that is longer is some
// other file.
const maxPassword = 4096

// ReadPassword reads a password from a file, without the line's end that
// editors leave. Open tells whether others than owner and group may read the
// file.
func ReadPassword(path string) (password string, open bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false, fmt.Errorf("reading the password: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxPassword {
		return "", false, fmt.Errorf("reading the password: %s is no file of at most %d bytes", path, maxPassword)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false, fmt.Errorf("reading the password: %w", err)
	}
	password = strings.TrimRight(string(text), "\r\n")
	switch {
	case password == "":
		return "", false, fmt.Errorf("reading the password: %s is empty", path)
	case strings.ContainsAny(password, "\r\n\x00"):
		return "", false, fmt.Errorf("reading the password: %s holds more than one line", path)
	}
	return password, info.Mode().Perm()&0o007 != 0, nil
}
