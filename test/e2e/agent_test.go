//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// agent is a landfall-agent that reports a cluster to a hub.
type agent struct {
	*process
	// user is as whom it speaks to the API server, and the name of the binding
	// that admits it there.
	user string
}

// quick makes an agent's intervals short, so that tests need not wait for them.
var quick = []string{"--heartbeat-interval", "2s", "--discovery-interval", "1s", "--log-level", "debug"}

// startAgent runs an agent for a cluster, under a name that its log and its user
// share, with further flags.
func startAgent(c *cluster, h *hub, clusterName, name string, flags ...string) (*agent, error) {
	path, err := built("landfall-agent")
	if err != nil {
		return nil, err
	}
	user, err := c.user(name)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfig(user, name, "default")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	if err := c.admit(context.Background(), name); err != nil {
		return nil, err
	}
	p, err := start(program{name: name, path: path, args: append([]string{
		"run", "--cluster", clusterName, "--memberships", "dev/drone", "--hub", h.url, "--kubeconfig", kubeconfig, "--listen", addresses[0],
	}, flags...)})
	if err != nil {
		return nil, err
	}
	return &agent{process: p, user: name}, nil
}

// agentRole is the role that the documentation tells people to give the agent:
// what is too little there fails here.
func agentRole() (string, error) {
	path := filepath.Join("..", "..", "docs", "agent.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for _, block := range strings.Split(string(page), "```")[1:] {
		if text, ok := strings.CutPrefix(block, "yaml\n"); ok && strings.Contains(text, "kind: ClusterRole\n") {
			return text, nil
		}
	}
	return "", fmt.Errorf("%s has no ClusterRole", path)
}

// admit gives an agent's user its rights on the cluster.
func (c *cluster) admit(ctx context.Context, user string) error {
	role, err := agentRole()
	if err != nil {
		return err
	}
	return errors.Join(c.applyText(ctx, role), c.applyText(ctx, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: landfall-agent}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]q}]
`, user)))
}
