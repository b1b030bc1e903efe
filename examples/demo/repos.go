package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The repositories and the branch of the environment dev.
const (
	platform    = "platform-gitops"
	application = "hello-world-gitops"
	branch      = "dev"
)

// repos are the Git repositories, with their working trees.
type repos struct{ dir string }

// newRepos makes a repository of each folder of gitops.
func newRepos(ctx context.Context, gitops, dir string) (*repos, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("git is needed; install it")
	}
	r := &repos{dir: dir}
	for _, name := range []string{platform, application} {
		if err := os.CopyFS(r.path(name), os.DirFS(filepath.Join(gitops, name))); err != nil {
			return nil, fmt.Errorf("making the repository %s: %w", name, err)
		}
		for _, args := range [][]string{
			{"init", "--quiet", "--initial-branch", branch},
			// Commits by hand must work for people without an identity, too.
			{"config", "user.name", "Landfall demo"},
			{"config", "user.email", "demo@landfall.invalid"},
			{"config", "commit.gpgsign", "false"},
		} {
			if _, err := r.git(ctx, name, args...); err != nil {
				return nil, err
			}
		}
		if name == application {
			for _, target := range []string{"functional-test", "performance-test"} {
				if err := r.describe(target, "1.0.0"); err != nil {
					return nil, err
				}
			}
		}
		if _, err := r.commit(ctx, name, "hello-world 1.0.0"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *repos) path(name string) string { return filepath.Join(r.dir, name) }

// commit commits what is in the working tree and returns the commit.
func (r *repos) commit(ctx context.Context, name, message string) (commit string, err error) {
	if _, err := r.git(ctx, name, "add", "--all"); err != nil {
		return "", err
	}
	if _, err := r.git(ctx, name, "commit", "--quiet", "--message", message); err != nil {
		return "", err
	}
	return r.git(ctx, name, "rev-parse", "HEAD")
}

// release commits a version of hello-world that needs so much memory.
func (r *repos) release(ctx context.Context, version string, memory int) (commit string, err error) {
	text := fmt.Sprintf("# The deployment target functional-test of the workload hello-world.\nVERSION=%s\nMEMORY_MIB=%d\n", version, memory)
	if err := os.WriteFile(filepath.Join(r.path(application), "functional-test", "service.env"), []byte(text), 0o600); err != nil {
		return "", err
	}
	if err := r.describe("functional-test", version); err != nil {
		return "", err
	}
	return r.commit(ctx, application, "hello-world "+version)
}

// describe writes the deployment descriptor by which the hub knows that version
// by its name: the build of an application would.
func (r *repos) describe(target, version string) error {
	built := sha256.Sum256([]byte("hello-world " + version))
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "hub.kalypso.io/v1alpha1", "kind": "DeploymentDescriptor", "metadata": map[string]any{"name": "hello-world-" + target},
		"spec": map[string]any{
			"workload": map[string]any{
				"name": "hello-world", "source": map[string]any{"repo": "https://git.example/kaizen/hello-world"},
				"application": map[string]any{"name": "greeting-service", "workspace": map[string]any{"name": "kaizen"}},
			},
			"deploymentTarget": map[string]any{
				"name": target, "environment": branch, "manifests": map[string]any{"repo": r.path(application), "branch": branch, "path": target},
			},
			"workloadVersion": map[string]any{
				"version": version, "build": "demo", "commit": hex.EncodeToString(built[:20]), "buildTime": time.Now().UTC().Format(time.RFC3339),
			},
		},
	})
	if err != nil {
		return fmt.Errorf("describing %s: %w", target, err)
	}
	folder := filepath.Join(r.path(application), "descriptors")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, target+".yaml"), text, 0o600)
}

func (r *repos) git(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.path(name)}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("git %s in %s: %w: %s", strings.Join(args, " "), name, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
