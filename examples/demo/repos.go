package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The repositories that the story commits to, or asks about, and the branch of
// the environment dev.
const (
	controlPlane = "control-plane"
	platform     = "platform-gitops"
	application  = "hello-world-gitops"
	services     = "services-gitops"
	branch       = "dev"
)

// contents are the branches of the repositories, by the folders of the example
// that they are made of. The platform's GitOps repository is empty: the hub writes
// it.
var contents = []struct{ repo, branch, folder string }{
	{controlPlane, "main", "main"},
	{controlPlane, branch, branch},
	{"hello-world-app", "main", "sources/hello-world-app"},
	{"services", "main", "sources/platform-services"},
	{application, branch, "gitops/hello-world-gitops"},
	{services, branch, "gitops/services-gitops"},
}

// target is a deployment target: its folder in its application's GitOps repository,
// and what its descriptor says.
type target struct{ repo, name, workload, application, workspace, source string }

// targets are those of the environment; the first is the story's.
var targets = []target{
	{application, "functional-test", "hello-world-app", "greeting-service", "kaizen-app-team", "hello-world-app"},
	{application, "performance-test", "hello-world-app", "greeting-service", "kaizen-app-team", "hello-world-app"},
	{services, "prometheus", "observability", "platform-services", "platform-team", "services"},
}

// repos are the Git repositories, with their working trees.
type repos struct{ dir string }

// newRepos makes the repositories of the example.
func newRepos(ctx context.Context, example, dir string) (*repos, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("git is needed; install it")
	}
	r := &repos{dir: dir}
	if err := r.init(ctx, platform, branch, "--bare"); err != nil {
		return nil, err
	}
	for _, c := range contents {
		if _, err := os.Stat(r.path(c.repo)); errors.Is(err, fs.ErrNotExist) {
			if err := r.init(ctx, c.repo, c.branch); err != nil {
				return nil, err
			}
		} else if _, err := r.git(ctx, c.repo, "switch", "--quiet", "--orphan", c.branch); err != nil {
			return nil, err
		}
		if err := r.fill(ctx, c.repo, filepath.Join(example, filepath.FromSlash(c.folder))); err != nil {
			return nil, fmt.Errorf("making the repository %s: %w", c.repo, err)
		}
		for i := range targets {
			if targets[i].repo != c.repo {
				continue
			}
			if err := r.describe(&targets[i]); err != nil {
				return nil, err
			}
		}
		if _, err := r.commit(ctx, c.repo, "The beginning"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// init makes an empty repository.
func (r *repos) init(ctx context.Context, name, branch string, more ...string) error {
	if err := os.MkdirAll(r.path(name), 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		append([]string{"init", "--quiet", "--initial-branch", branch}, more...),
		// Commits by hand must work for people without an identity, too.
		{"config", "user.name", "Landfall demo"},
		{"config", "user.email", "demo@landfall.invalid"},
		{"config", "commit.gpgsign", "false"},
	} {
		if _, err := r.git(ctx, name, args...); err != nil {
			return err
		}
	}
	return nil
}

var (
	addresses = regexp.MustCompile(`https://git\.example/[a-z]+/([a-z-]+)`)
	pinned    = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
)

// fill copies a folder of the example into a working tree. Repositories are these,
// and the promoted commit that an environment pins is the one that there is.
func (r *repos) fill(ctx context.Context, name, from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading the example: %w", err)
		}
		to := filepath.Join(r.path(name), filepath.FromSlash(file))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		here := addresses.ReplaceAllString(string(text), strings.ReplaceAll(r.dir, "$", "$$")+"/$1")
		if file == "base-repo.yaml" {
			main, err := r.git(ctx, name, "rev-parse", "main")
			if err != nil {
				return err
			}
			here = pinned.ReplaceAllString(here, main)
		}
		return os.WriteFile(to, []byte(here), 0o600)
	})
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

// head returns where a branch is, "" for nowhere.
func (r *repos) head(ctx context.Context, name string) (commit string, err error) {
	return r.git(ctx, name, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// release commits a version of hello-world that needs so much memory.
func (r *repos) release(ctx context.Context, version string, memory int) (commit string, err error) {
	m := &targets[0]
	text := fmt.Sprintf("# The deployment target %s of the workload %s.\nVERSION=%s\nMEMORY_MIB=%d\n", m.name, m.workload, version, memory)
	if err := os.WriteFile(r.service(m), []byte(text), 0o600); err != nil {
		return "", err
	}
	if err := r.describe(m); err != nil {
		return "", err
	}
	return r.commit(ctx, application, "hello-world "+version)
}

// edit commits a file of the control plane in which one text stands for another.
func (r *repos) edit(ctx context.Context, file, from, to, message string) (commit string, err error) {
	name := filepath.Join(r.path(controlPlane), filepath.FromSlash(file))
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(text), from) {
		return "", fmt.Errorf("%s of the control plane has no %q", file, from)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(text), from, to)), 0o600); err != nil {
		return "", err
	}
	return r.commit(ctx, controlPlane, message)
}

// service is the file of the manifests.
func (r *repos) service(m *target) string {
	return filepath.Join(r.path(m.repo), m.name, "service.env")
}

var versionLine = regexp.MustCompile(`(?m)^VERSION=(\S+)$`)

// describe writes the deployment descriptor by which the hub knows the version of
// a target by its name: the build of an application would.
func (r *repos) describe(m *target) error {
	text, err := os.ReadFile(r.service(m))
	if err != nil {
		return err
	}
	found := versionLine.FindSubmatch(text)
	if found == nil {
		return fmt.Errorf("%s names no VERSION", r.service(m))
	}
	version := string(found[1])
	built := sha256.Sum256([]byte(m.workload + " " + version))
	descriptor, err := yaml.Marshal(map[string]any{
		"apiVersion": "hub.kalypso.io/v1alpha1", "kind": "DeploymentDescriptor", "metadata": map[string]any{"name": m.workload + "-" + m.name},
		"spec": map[string]any{
			"workload": map[string]any{
				"name": m.workload, "source": map[string]any{"repo": r.path(m.source)},
				"application": map[string]any{"name": m.application, "workspace": map[string]any{"name": m.workspace}},
			},
			"deploymentTarget": map[string]any{
				"name": m.name, "environment": branch, "manifests": map[string]any{"repo": r.path(m.repo), "branch": branch, "path": m.name},
			},
			"workloadVersion": map[string]any{
				"version": version, "build": "demo", "commit": hex.EncodeToString(built[:20]), "buildTime": time.Now().UTC().Format(time.RFC3339),
			},
		},
	})
	if err != nil {
		return fmt.Errorf("describing %s: %w", m.name, err)
	}
	folder := filepath.Join(r.path(m.repo), "descriptors")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, m.name+".yaml"), descriptor, 0o600)
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
