package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"time"
)

var ready = regexp.MustCompile(`msg=ready url=(\S+)`)

// startHub starts the hub and returns its URL when it is ready.
func startHub(ctx context.Context, p *programs, listen, dir string) (url string, err error) {
	hub, err := p.start("hub", "landfall-hub", "serve", "--listen", listen, "--data-dir", dir)
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
