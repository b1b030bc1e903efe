package main

import (
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/landfall-hub/landfall/schema"
)

// apply is the apply command of every host.
//
//go:embed apply.sh
var apply []byte

// host is a machine without Kubernetes.
type host struct {
	name, kind string
	// memory is in MiB.
	memory int
}

type hosts []host

// small is the host that cannot take the large version.
const small = "drone-05"

func newHosts() hosts {
	var all hosts
	for i := range 8 {
		h := host{name: fmt.Sprintf("drone-%02d", i+1), kind: "drone", memory: 4096}
		if h.name == small {
			h.memory = 1024
		}
		all = append(all, h)
	}
	for i := range 4 {
		all = append(all, host{name: fmt.Sprintf("large-%02d", i+1), kind: "large", memory: 65536})
	}
	return all
}

// start starts an agent for each host. It follows what the scheduler assigned to
// the host's type.
func (all hosts) start(p *programs, hub string, r *repos, assigned []schema.Assignment, dir string) error {
	command := filepath.Join(dir, "apply.sh")
	if err := os.WriteFile(command, apply, 0o600); err != nil {
		return err
	}
	for _, h := range all {
		home := filepath.Join(dir, "hosts", h.name)
		file, err := writeYAML(home, "agent.yaml", h.config(hub, r, assigned, command, home))
		if err != nil {
			return err
		}
		if _, err := p.start(h.name, "landfall-agent", "run", "--config", file); err != nil {
			return err
		}
	}
	return nil
}

// config is the host's agent.yaml.
func (h *host) config(hub string, r *repos, assigned []schema.Assignment, command, home string) map[string]any {
	folder := func(name, repo, ref, path string) map[string]any {
		return map[string]any{
			"name": name, "repo": repo, "ref": ref, "path": path, "interval": "2s",
			"apply": map[string]any{
				"argv": []string{"/bin/sh", command},
				"env":  map[string]string{"HOST_ROOT": filepath.Join(home, "root"), "HOST_MEMORY_MIB": fmt.Sprint(h.memory)},
			},
		}
	}
	folders := []any{folder("platform", r.path(platform), branch, h.kind)}
	for i := range assigned {
		if a := &assigned[i]; a.ClusterType == h.kind {
			folders = append(folders, folder(a.DeploymentTarget, a.Repo, a.Ref, path.Clean(a.Path)))
		}
	}
	return map[string]any{
		"cluster": map[string]any{
			"name": h.name, "memberships": []any{map[string]string{"environment": branch, "type": h.kind}},
		},
		"hub":                map[string]string{"url": hub},
		"heartbeat_interval": "10s",
		"listen":             "127.0.0.1:0",
		"host": map[string]any{
			"state_dir": filepath.Join(home, "state"),
			"parallel":  1, // the folders share the host's root
			"folders":   folders,
		},
	}
}
