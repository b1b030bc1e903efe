package hub

import (
	"errors"
	"fmt"

	"github.com/landfall-hub/landfall/hub/api"
	"github.com/landfall-hub/landfall/hub/engine"
)

// WebhooksConfig says which Git providers may tell of pushes.
type WebhooksConfig struct {
	GitHub WebhookConfig `yaml:"github"`
	GitLab WebhookConfig `yaml:"gitlab"`
	// Gitea is Forgejo, too.
	Gitea WebhookConfig `yaml:"gitea"`
}

// WebhookConfig is how a provider shows who it is.
type WebhookConfig struct {
	// SecretFile holds the secret that it signs with, or sends: one line. Empty is
	// for providers that are not answered.
	SecretFile string `yaml:"secret_file"`
}

// files are the files of those providers that are answered.
func (c WebhooksConfig) files() map[string]string {
	files := map[string]string{}
	for name, w := range map[string]WebhookConfig{"github": c.GitHub, "gitlab": c.GitLab, "gitea": c.Gitea} {
		if w.SecretFile != "" {
			files[name] = w.SecretFile
		}
	}
	return files
}

// check reads each secret once, so that a wrong path is told at the start. It
// returns the files that everybody on this machine may read.
func (c WebhooksConfig) check() (open []string, err error) {
	var errs []error
	for _, name := range []string{"github", "gitlab", "gitea"} {
		file, ok := c.files()[name]
		if !ok {
			continue
		}
		_, anybody, err := engine.ReadPassword(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhooks.%s.secret_file: %w", name, err))
		}
		if anybody {
			open = append(open, file)
		}
	}
	return open, errors.Join(errs...)
}

// webhooks are answered by fetching. Secrets are read anew each time: mounted
// ones rotate.
func (c WebhooksConfig) webhooks(fetch func(repo string) bool) api.Webhooks {
	w := api.Webhooks{Secrets: map[string]func() (string, error){}, Fetch: fetch}
	for name, file := range c.files() {
		w.Secrets[name] = func() (string, error) {
			secret, _, err := engine.ReadPassword(file)
			return secret, err
		}
	}
	return w
}
