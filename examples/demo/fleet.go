package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/schema"
)

const (
	repo      = "https://git.example/kaizen/platform-gitops"
	oldCommit = "4f6e1c2b7a9d3e5f8091a2b3c4d5e6f708192a3b"
	newCommit = "9e04d1b2c3a4f5e60718293a4b5c6d7e8f90a1b2"
	// sick is the cluster whose rollout fails.
	sick = 4
	// heartbeat is how often a cluster is heard of.
	heartbeat = 10 * time.Second
	repair    = time.Minute
)

// cluster is a simulated cluster with one reconciler.
type cluster struct {
	name, kind string
	epoch, seq uint64
}

// fleet is the simulated fleet.
type fleet struct {
	client   *hubclient.Client
	clusters []*cluster
}

func newFleet(ctx context.Context, client *hubclient.Client) (*fleet, error) {
	f := &fleet{client: client}
	for i := range 12 {
		c := &cluster{name: fmt.Sprintf("drone-%02d", i+1), kind: "drone"}
		if i >= 8 {
			c.name, c.kind = fmt.Sprintf("large-%02d", i-7), "large"
		}
		epoch, err := client.Register(ctx, c.name, schema.Registration{
			Environment: "dev", Type: c.kind, Labels: map[string]string{"region": "west-us"}, HeartbeatInterval: schema.Duration(heartbeat),
		})
		if err != nil {
			return nil, err
		}
		c.epoch = epoch
		f.clusters = append(f.clusters, c)
	}
	return f, nil
}

// report says what a cluster's reconciler does.
func (f *fleet) report(ctx context.Context, i int, status schema.Status, attempted, applied, message string) error {
	c := f.clusters[i]
	c.seq++
	reason := map[schema.Status]string{schema.StatusSuccess: "ReconciliationSucceeded", schema.StatusFailure: "HealthCheckFailed", schema.StatusInProgress: "Progressing"}[status]
	if message == "" {
		message = "Applied revision: dev@sha1:" + applied
	}
	observed := true
	_, err := f.client.Report(ctx, c.name, &schema.Report{
		Agent: schema.Agent{Version: "demo"}, Epoch: c.epoch, Sequence: c.seq, Mode: schema.ModeSnapshot, Kinds: []string{"Kustomization"}, ObservedAt: time.Now().UTC(),
		Reconcilers: []schema.Reconciler{{
			Kind: "Kustomization", Namespace: "flux-system", Name: c.kind, GenerationObserved: &observed,
			Sources: []schema.Source{{Type: schema.SourceGit, URL: repo, Ref: "dev", Path: "./" + c.kind}},
			Status:  status, Reason: reason, Message: message,
			Attempted: []string{"dev@sha1:" + attempted}, Applied: []string{"dev@sha1:" + applied},
		}},
	})
	return err
}

// keepAlive sends heartbeats until ctx ends, and repairs the sick cluster
// after a while.
func (f *fleet) keepAlive(ctx context.Context, exited <-chan struct{}) error {
	beat, mend := time.NewTicker(heartbeat/2), time.NewTimer(repair)
	defer beat.Stop()
	defer mend.Stop()
	for {
		select {
		case <-ctx.Done():
			sayf("\nstopping the hub; nothing is left behind")
			return nil
		case <-exited:
			return errors.New("the hub has ended")
		case <-mend.C:
			if err := f.report(ctx, sick, schema.StatusSuccess, newCommit, newCommit, ""); err != nil {
				return err
			}
			sayf("%s is repaired: ask the gate again", f.clusters[sick].name)
		case <-beat.C:
			for _, c := range f.clusters {
				_, err := f.client.Heartbeat(ctx, c.name, schema.Heartbeat{Epoch: c.epoch, Sequence: c.seq})
				if err != nil && ctx.Err() == nil {
					sayf("heartbeat of %s: %v", c.name, err)
				}
			}
		}
	}
}
