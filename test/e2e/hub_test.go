//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/landfall-hub/landfall/internal/hubclient"
)

// hub is a landfall-hub with its embedded engine.
type hub struct {
	*process
	url    string
	client *hubclient.Client
}

// hubSettings make what waits for minutes wait for seconds.
const hubSettings = "compliance: {age_after: 5s}\n"

// startHub runs a hub on an empty folder, with further settings, and waits until
// it is ready.
func startHub(name, settings string) (*hub, error) {
	path, err := built("landfall-hub")
	if err != nil {
		return nil, err
	}
	library, err := built("libchdb.so")
	if err != nil {
		return nil, err
	}
	folder, err := newFolder(name)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(folder, "hub.yaml")
	if err := os.WriteFile(config, []byte(hubSettings+settings), 0o600); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	h := &hub{url: "http://" + addresses[0]}
	if h.client, err = hubclient.New(hubclient.Options{URL: h.url, UserAgent: "e2e"}); err != nil {
		return nil, err
	}
	h.process, err = start(program{
		name: name, path: path, env: []string{"LANDFALL_CHDB_LIB=" + library},
		args: []string{"serve", "--config", config, "--listen", addresses[0], "--data-dir", filepath.Join(folder, "data")},
	})
	if err != nil {
		return nil, err
	}
	return h, h.awaitReady()
}

func (h *hub) awaitReady() error {
	return await(h.name+" is ready", func() error { return h.client.Ready(context.Background()) }, h.process)
}

// get reads JSON that the command line has no use for.
func (h *hub) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
