package gitrepo_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/landfall-hub/landfall/internal/gitrepo"
)

func newKey(t *testing.T) (signer ssh.Signer, text string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err = ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

// listen accepts connections until the test ends.
func listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer conn.Close(); handle(conn) })
		}
	})
	return l.Addr().String()
}

// serveSSH runs git-upload-pack for whoever has the key. The server has a second
// key, of a kind that clients like better than the one in known_hosts.
func serveSSH(t *testing.T, root string) (url string, auth gitrepo.Auth) {
	t.Helper()
	host, _ := newKey(t)
	_, private := newKey(t)
	keyFile := write(t, "key", private)
	allowed, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || string(key.Marshal()) != string(allowed.PublicKey().Marshal()) {
			return nil, errors.New("who is this")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	liked, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.NewSignerFromKey(liked)
	if err != nil {
		t.Fatal(err)
	}
	config.AddHostKey(other)
	address := listen(t, func(conn net.Conn) {
		c, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		defer c.Close()
		go ssh.DiscardRequests(requests)
		for nc := range channels {
			channel, requests, err := nc.Accept()
			if err != nil {
				return
			}
			for req := range requests {
				var asked struct{ Command string }
				if req.Type != "exec" || ssh.Unmarshal(req.Payload, &asked) != nil {
					_ = req.Reply(false, nil)
					continue
				}
				_ = req.Reply(true, nil)
				path := strings.Trim(strings.TrimPrefix(asked.Command, "git-upload-pack "), "'")
				cmd := exec.Command("git", "upload-pack", filepath.Join(root, path))
				cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
				in, err := cmd.StdinPipe()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(in, channel); _ = in.Close() }()
				_ = cmd.Run()
				_ = channel.Close()
			}
		}
	})
	return "ssh://git@" + address, gitrepo.Auth{
		SSHKeyFile: keyFile, KnownHostsFile: write(t, "known_hosts", knownhosts.Line([]string{address}, host.PublicKey())+"\n"),
	}
}

// silentServer takes connections and says nothing.
func silentServer(t *testing.T, reached chan<- string) (url string, auth gitrepo.Auth) {
	t.Helper()
	host, private := newKey(t)
	address := listen(t, func(conn net.Conn) {
		reached <- "ssh"
		buf := make([]byte, 1024)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	})
	return "ssh://git@" + address + "/repo.git", gitrepo.Auth{
		SSHKeyFile: write(t, "key", private), KnownHostsFile: write(t, "known_hosts", knownhosts.Line([]string{address}, host.PublicKey())+"\n"),
	}
}

func TestSSHTrust(t *testing.T) {
	server := newServer(t)
	head := server.NewRepo(t, "repo", "sha1").Commit(t, map[string]string{"a": "1"})
	url, auth := serveSSH(t, server.Root)
	url += "/repo.git"
	address := strings.TrimSuffix(strings.TrimPrefix(url, "ssh://git@"), "/repo.git")
	other, otherKey := newKey(t)
	fetch(t, open(t, gitrepo.Options{URL: url, Auth: auth}), "main", head)
	fetch(t, open(t, gitrepo.Options{URL: strings.Replace(url, "git@", "", 1), Auth: auth}), "main", head)
	cases := map[string]struct {
		reason string
		change func(*gitrepo.Auth)
		words  string
		is     error
	}{
		"another key":  {"the server does not know it", func(a *gitrepo.Auth) { a.SSHKeyFile = write(t, "key", otherKey) }, "does not take the key", gitrepo.ErrAuth},
		"another user": {"nor this one", func(a *gitrepo.Auth) { a.Username = "root" }, "does not take the key", gitrepo.ErrAuth},
		"a stranger":   {"nobody confirmed it", func(a *gitrepo.Auth) { a.KnownHostsFile = write(t, "known_hosts", "") }, "is not in", nil},
		"an impostor": {"it shows another key", func(a *gitrepo.Auth) {
			a.KnownHostsFile = write(t, "known_hosts", knownhosts.Line([]string{address}, other.PublicKey()))
		}, "another key than", nil},
		"no key":         {"the file is named", func(a *gitrepo.Auth) { a.SSHKeyFile = "/nowhere/key" }, "/nowhere/key", nil},
		"no private key": {"the file is named", func(a *gitrepo.Auth) { a.SSHKeyFile = write(t, "key", "x") }, "no private key", nil},
		"no known_hosts": {"the file is named", func(a *gitrepo.Auth) { a.KnownHostsFile = "/nowhere/known_hosts" }, "/nowhere/known_hosts", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			changed := auth
			c.change(&changed)
			address := url
			if changed.Username != "" {
				address = strings.Replace(url, "git@", "", 1)
			}
			_, err := open(t, gitrepo.Options{URL: address, Auth: changed}).Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), c.words) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}
