package main

import (
	"fmt"
	"path/filepath"
)

// host is a machine without Kubernetes.
type host struct {
	name, kind string
	// memory is in MiB.
	memory int
	// target is the folder of the application's repository that it follows.
	target string
}

type hosts []host

// small is the host that cannot take the large version.
const small = "drone-05"

func newHosts() hosts {
	var all hosts
	for i := range 8 {
		h := host{name: fmt.Sprintf("drone-%02d", i+1), kind: "drone", memory: 4096, target: "functional-test"}
		if h.name == small {
			h.memory = 1024
		}
		all = append(all, h)
	}
	for i := range 4 {
		all = append(all, host{name: fmt.Sprintf("large-%02d", i+1), kind: "large", memory: 65536, target: "performance-test"})
	}
	return all
}

// start starts an agent for each host.
func (all hosts) start(p *programs, hub string, r *repos, gitops, dir string) error {
	apply, err := filepath.Abs(filepath.Join(gitops, "apply.sh"))
	if err != nil {
		return err
	}
	for _, h := range all {
		home := filepath.Join(dir, "hosts", h.name)
		file, err := writeYAML(home, "agent.yaml", h.config(hub, r, apply, home))
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
func (h *host) config(hub string, r *repos, apply, home string) map[string]any {
	folder := func(name, repo, path string) map[string]any {
		return map[string]any{
			"name": name, "repo": r.path(repo), "ref": branch, "path": path, "interval": "2s",
			"apply": map[string]any{
				"argv": []string{"/bin/sh", apply},
				"env":  map[string]string{"HOST_ROOT": filepath.Join(home, "root"), "HOST_MEMORY_MIB": fmt.Sprint(h.memory)},
			},
		}
	}
	return map[string]any{
		"cluster": map[string]any{
			"name": h.name, "memberships": []any{map[string]string{"environment": "dev", "type": h.kind}}, "labels": map[string]string{"region": "west-us"},
		},
		"hub":                map[string]string{"url": hub},
		"heartbeat_interval": "10s",
		"listen":             "127.0.0.1:0",
		"host": map[string]any{
			"state_dir": filepath.Join(home, "state"),
			"folders":   []any{folder("platform", platform, h.kind), folder("hello-world", application, h.target)},
		},
	}
}
