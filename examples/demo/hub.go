package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// writeYAML writes a settings file and returns its path.
func writeYAML(dir, name string, settings any) (file string, err error) {
	text, err := yaml.Marshal(settings)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name)
	return file, os.WriteFile(file, text, 0o600)
}

var ready = regexp.MustCompile(`msg=ready url=(\S+)`)

// startHub starts a hub that follows the repositories and plans the control plane,
// and returns its URL when it is ready.
func startHub(ctx context.Context, p *programs, listen, dir string, r *repos) (url string, err error) {
	follows := func(name string) map[string]any {
		return map[string]any{"url": r.path(name), "refs": []string{branch}, "interval": "2s"}
	}
	file, err := writeYAML(dir, "hub.yaml", map[string]any{
		"control_planes": []any{map[string]any{"url": r.path(controlPlane), "environments": map[string]string{branch: branch}, "interval": "1s"}},
		"repositories":   []any{follows(platform), follows(application), follows(services)},
	})
	if err != nil {
		return "", err
	}
	hub, err := p.start("hub", "landfall-hub", "serve", "--config", file, "--listen", listen, "--data-dir", filepath.Join(dir, "data"))
	if err != nil {
		return "", err
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if text, err := os.ReadFile(p.log("hub")); err == nil {
				if m := ready.FindSubmatch(text); m != nil {
					return string(m[1]), nil
				}
			}
		case <-hub.done:
			why := strings.TrimPrefix(p.lastLine("hub"), "landfall-hub: ")
			if strings.Contains(why, "--listen") {
				why += "; with make: make run LISTEN=127.0.0.1:9090"
			}
			return "", errors.New(why)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
