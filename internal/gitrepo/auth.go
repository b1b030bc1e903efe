package gitrepo

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// Auth says as whom to speak to a server, and whom to trust. Files are read at
// each fetch: what is rotated is used at once.
type Auth struct {
	// Username goes with TokenFile over http(s); empty is "git", which servers
	// take with a token. Over ssh it is the account, "git" too.
	Username string
	// TokenFile holds a token or a password, for http(s).
	TokenFile string
	// SSHKeyFile holds a private key without a passphrase, and KnownHostsFile the
	// servers' keys, for ssh: both are needed.
	SSHKeyFile, KnownHostsFile string
	// CAFile holds certificates (PEM) that are trusted beside the system's, for
	// https.
	CAFile string
}

const defaultUser = "git"

// check says what is wrong with the auth for an address.
func (a Auth) check(ep *transport.Endpoint) error {
	switch web := ep.Protocol == "http" || ep.Protocol == "https"; {
	case ep.Protocol == "ssh" && (a.SSHKeyFile == "" || a.KnownHostsFile == ""):
		return errors.New("ssh needs a private key and a known_hosts file")
	case ep.Protocol == "ssh" && (ep.Password != "" || a.TokenFile != ""):
		return errors.New("over ssh there is no password or token: use a key")
	case ep.Protocol != "ssh" && (a.SSHKeyFile != "" || a.KnownHostsFile != ""):
		return errors.New("a private key and known_hosts are for ssh addresses")
	case !web && a.TokenFile != "":
		return errors.New("a token is for http and https addresses")
	case web && a.Username != "" && a.TokenFile == "":
		return errors.New("a user name needs a token file")
	case ep.Protocol != "https" && a.CAFile != "":
		return errors.New("certificates are for https addresses")
	case web && ep.User != "" && a.TokenFile != "":
		return errors.New("the address and the token file both hold credentials: give one")
	}
	return nil
}

// basic returns what to send over http(s), nil for nothing.
func (r *Repo) basic() (http.AuthMethod, error) {
	if r.user != "" {
		return &http.BasicAuth{Username: r.user, Password: r.password}, nil
	}
	if r.opts.Auth.TokenFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(r.opts.Auth.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return nil, fmt.Errorf("the token file %s is empty", r.opts.Auth.TokenFile)
	}
	user := r.opts.Auth.Username
	if user == "" {
		user = defaultUser
	}
	return &http.BasicAuth{Username: user, Password: token}, nil
}

// trusted returns the system's certificates and those of a file; nil, the
// system's alone, for no file.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a container without any
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}
