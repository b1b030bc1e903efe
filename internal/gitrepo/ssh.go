package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// callSSH runs a service at the other end of an SSH connection. The
// connection ends with ctx, whatever it is doing.
func (r *Repo) callSSH(ctx context.Context, p *patience, s service) (*pipe, error) {
	port := r.endpoint.Port
	if port == 0 {
		port = 22
	}
	address := net.JoinHostPort(strings.Trim(r.endpoint.Host, "[]"), strconv.Itoa(port))
	config, err := r.sshConfig(address)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: connectTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(connectTime))
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, r.sshRefusal(address, err)
	}
	_ = conn.SetDeadline(time.Time{})
	client := ssh.NewClient(c, channels, requests)
	talk, err := r.begin(client, p, s)
	if err != nil {
		stop()
		_ = client.Close()
		return nil, err
	}
	talk.hangUp = func() { stop(); _ = client.Close() }
	talk.wait = func() error { _ = client.Wait(); return nil }
	return talk, nil
}

// begin starts the program at the other end.
func (r *Repo) begin(client *ssh.Client, p *patience, s service) (*pipe, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr := &tail{}
	session.Stderr = stderr
	// As git quotes it for the shell at the other end.
	path := "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(r.endpoint.Path) + "'"
	if err := session.Start("git-" + string(s) + " " + path); err != nil {
		return nil, fmt.Errorf("starting git-%s: %w", s, err)
	}
	return &pipe{in: in, out: p.reader(out), stderr: stderr, linger: func() { _ = session.Wait() }}, nil
}

func (r *Repo) sshConfig(address string) (*ssh.ClientConfig, error) {
	text, err := os.ReadFile(r.opts.Auth.SSHKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, fmt.Errorf("the private key %s has a passphrase: use one without, readable by this user alone", r.opts.Auth.SSHKeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no private key: %w", r.opts.Auth.SSHKeyFile, err)
	}
	known, err := knownhosts.New(r.opts.Auth.KnownHostsFile)
	if err != nil {
		return nil, fmt.Errorf("reading known_hosts: %w", err)
	}
	user := r.user
	if user == "" {
		user = r.opts.Auth.Username
	}
	if user == "" {
		user = defaultUser
	}
	return &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: known, HostKeyAlgorithms: keyAlgorithms(known, address), Timeout: connectTime,
	}, nil
}

// sshRefusal words why a handshake failed.
func (r *Repo) sshRefusal(address string, err error) error {
	if bad, ok := errors.AsType[*knownhosts.KeyError](err); ok {
		if len(bad.Want) == 0 {
			return fmt.Errorf("%s is not in %s: add its key (ssh-keyscan shows it, its owner confirms it)", address, r.opts.Auth.KnownHostsFile)
		}
		return fmt.Errorf("%s shows another key than %s has: somebody may stand between, or the key was changed", address, r.opts.Auth.KnownHostsFile)
	}
	if strings.Contains(err.Error(), "unable to authenticate") {
		return fmt.Errorf("%w: the server does not take the key", ErrAuth)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: no SSH handshake after %s", ErrTimeout, connectTime)
	}
	return err
}

// keyAlgorithms returns the kinds of keys that known_hosts has of a server. It
// would show others first, and those would count as unknown.
func keyAlgorithms(known ssh.HostKeyCallback, address string) []string {
	bad, ok := errors.AsType[*knownhosts.KeyError](known(address, &net.TCPAddr{IP: net.IPv4zero}, noKey{}))
	if !ok {
		return nil
	}
	var kinds []string
	for _, k := range bad.Want {
		if k.Key.Type() == ssh.KeyAlgoRSA {
			kinds = append(kinds, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		kinds = append(kinds, k.Key.Type())
	}
	return kinds
}

// noKey is nobody's.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return io.ErrUnexpectedEOF }
