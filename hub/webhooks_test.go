package hub

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/internal/polltest"
	"github.com/landfall-hub/landfall/schema"
)

// TestOpenSecrets warns of secrets that everybody may read.
func TestOpenSecrets(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	config := DefaultConfig()
	config.Listen, config.DataDir = "127.0.0.1:0", filepath.Join(dir, "data")
	config.ClickHouse.URL = "http://127.0.0.1:1" // nobody is asked
	for name, c := range map[string]struct {
		mode   os.FileMode
		secret *WebhookConfig
	}{"open": {0o644, &config.Webhooks.GitHub}, "kept": {0o600, &config.Webhooks.GitLab}} {
		c.secret.SecretFile = filepath.Join(dir, name)
		if err := os.WriteFile(c.secret.SecretFile, []byte("s3cr3t"), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.secret.SecretFile, c.mode); err != nil {
			t.Fatal(err)
		}
	}
	h, err := New(Options{Config: config, Version: "test", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.listener.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), filepath.Join(dir, "open")) || strings.Contains(log.String(), filepath.Join(dir, "kept")) || strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("the log is\n%s", log.String())
	}
}

// TestWebhook follows a repository once an hour: what is pushed is known at once
// when the server tells, under any of its names.
func TestWebhook(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(secret, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	s := newStageWith(t, func(c *Config) {
		c.Webhooks = WebhooksConfig{GitHub: WebhookConfig{SecretFile: secret}, GitLab: WebhookConfig{SecretFile: secret}, Gitea: WebhookConfig{SecretFile: secret}}
		for i := range c.Repositories {
			c.Repositories[i].Interval = schema.Duration(time.Hour)
		}
	}, "pushed", "other")
	known := func(repo string, want int) {
		t.Helper()
		line := fmt.Sprintf("landfall_git_commits{repository=%q} %d\n", "file://"+filepath.Join(s.server.Root, repo), want)
		polltest.Until(t, "the hub says "+line, func() bool {
			_, metrics := get(t, s.hub.URL()+"/metrics")
			return strings.Contains(metrics, line)
		})
	}
	send := func(provider, key string, header map[string]string, body string) (int, string) {
		t.Helper()
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(body))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.hub.URL()+"/api/v1/webhooks/"+provider, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for k, v := range header {
			r.Header.Set(k, strings.NewReplacer("HMAC", hex.EncodeToString(mac.Sum(nil)), "KEY", key).Replace(v))
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	github := map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=HMAC"}
	gitlab := map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "KEY"}
	gitea := map[string]string{"X-Gitea-Event": "push", "X-Gitea-Signature": "HMAC"}
	const fetched = `{"push":true,"followed":true}`

	known("pushed", 1) // the first fetch is over, the next in an hour
	known("other", 1)
	commits := 1
	for _, c := range []struct {
		provider string
		header   map[string]string
		body     string
	}{
		{"github", github, `{"ref":"refs/heads/main","forced":false,"repository":{"ssh_url":"git@mirror.example:pushed.git","clone_url":"https://github.com/elsewhere/pushed.git"}}`},
		{"gitlab", gitlab, `{"object_kind":"push","project":{"git_http_url":"https://mirror.example/pushed.git"}}`},
		{"gitea", gitea, `{"ref":"refs/heads/main","repository":{"html_url":"https://mirror.example/pushed"}}`},
	} {
		s.repos["pushed"].Commit(t, map[string]string{"drone/a": c.provider})
		commits++
		if code, text := send(c.provider, "before", c.header, c.body); code != http.StatusAccepted || text != fetched {
			t.Fatalf("%s: %d %s", c.provider, code, text)
		}
		known("pushed", commits)
	}

	body := `{"repository":{"html_url":"https://mirror.example/pushed"}}`
	if code, text := send("github", "another", github, body); code != http.StatusUnauthorized {
		t.Errorf("by another secret: %d %s", code, text)
	}
	write("after") // the secret rotates
	if code, text := send("github", "before", github, body); code != http.StatusUnauthorized {
		t.Errorf("by the secret before: %d %s", code, text)
	}
	if code, text := send("github", "after", github, body); code != http.StatusAccepted || text != fetched {
		t.Errorf("by the new secret: %d %s", code, text)
	}
	if code, text := send("github", "after", github, `{"repository":{"html_url":"https://mirror.example/unheard-of"}}`); code != http.StatusAccepted || text != `{"push":true,"followed":false}` {
		t.Errorf("of a repository that nobody follows: %d %s", code, text)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	if code, text := send("github", "after", github, body); code != http.StatusServiceUnavailable || strings.Contains(text, secret) {
		t.Errorf("without a secret: %d %s", code, text)
	}
}
