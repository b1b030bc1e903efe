package hubclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync"

	"github.com/landfall-hub/landfall/schema"
)

// gzipAbove is the size in bytes from which a report is compressed.
const gzipAbove = 1 << 10

// gzipWriters keeps compressors, which have most of a megabyte each. gzip is
// the standard library's; zstd would cost the agent more memory than it saves.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

func clusterPath(cluster, tail string) (string, error) {
	if err := schema.ValidateClusterName(cluster); err != nil {
		return "", err
	}
	return apiPrefix + "/clusters/" + url.PathEscape(cluster) + tail, nil
}

// Register registers the cluster and returns the epoch of its new session.
func (c *Client) Register(ctx context.Context, cluster string, r schema.Registration) (uint64, error) {
	path, err := clusterPath(cluster, "")
	if err != nil {
		return 0, err
	}
	var answer schema.RegistrationAnswer
	k := call{method: http.MethodPut, path: path, timeout: answerTimeout, into: &answer}
	if err := c.doJSON(ctx, k, r); err != nil {
		return 0, err
	}
	if answer.Epoch == 0 {
		return 0, c.failed(ctx, k, "reading the answer", fmt.Errorf("%w: it names no epoch", ErrBadAnswer))
	}
	return answer.Epoch, nil
}

// Report sends a report; a nil error says that the hub has stored it. Reports
// above 1 KiB travel compressed.
func (c *Client) Report(ctx context.Context, cluster string, r *schema.Report) (schema.ReportAnswer, error) {
	var answer schema.ReportAnswer
	path, err := clusterPath(cluster, "/reports")
	if err != nil {
		return answer, err
	}
	k := call{method: http.MethodPost, path: path, timeout: reportTimeout, into: &answer}
	if err := c.doJSON(ctx, k, r); err != nil {
		return answer, err
	}
	if answer.CurrentEpoch == 0 {
		return answer, c.failed(ctx, k, "reading the answer", fmt.Errorf("%w: it names no epoch", ErrBadAnswer))
	}
	return answer, nil
}

// Heartbeat says that the cluster's agent lives.
func (c *Client) Heartbeat(ctx context.Context, cluster string, h schema.Heartbeat) (schema.HeartbeatAnswer, error) {
	var answer schema.HeartbeatAnswer
	path, err := clusterPath(cluster, "/heartbeat")
	if err != nil {
		return answer, err
	}
	k := call{method: http.MethodPost, path: path, timeout: answerTimeout, into: &answer}
	if err := c.doJSON(ctx, k, h); err != nil {
		return answer, err
	}
	if answer.CurrentEpoch == 0 {
		return answer, c.failed(ctx, k, "reading the answer", fmt.Errorf("%w: it names no epoch", ErrBadAnswer))
	}
	return answer, nil
}

// doJSON sends body as JSON, compressed when that is worth it.
func (c *Client) doJSON(ctx context.Context, k call, body any) error {
	plain, err := json.Marshal(body)
	if err != nil {
		return c.failed(ctx, k, "writing the request", err)
	}
	k.body = plain
	if len(plain) > gzipAbove {
		if k.body, err = compress(plain); err != nil {
			return c.failed(ctx, k, "compressing the request", err)
		}
		k.gzipped = true
	}
	return c.do(ctx, k)
}

func compress(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Cluster returns one cluster.
func (c *Client) Cluster(ctx context.Context, name string) (schema.Cluster, error) {
	var answer schema.Cluster
	path, err := clusterPath(name, "")
	if err != nil {
		return answer, err
	}
	return answer, c.do(ctx, call{method: http.MethodGet, path: path, timeout: answerTimeout, into: &answer})
}

// Decommission takes a cluster out of every verdict.
func (c *Client) Decommission(ctx context.Context, name string) error {
	path, err := clusterPath(name, "")
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path, timeout: answerTimeout})
}

// Clusters lists clusters, pageSize at a time (see pages).
func (c *Client) Clusters(ctx context.Context, f schema.ClusterFilter, pageSize int) iter.Seq2[schema.Cluster, error] {
	return pages[schema.Cluster](ctx, c, apiPrefix+"/clusters", filter(
		"environment", f.Environment, "cluster_type", f.ClusterType, "status", string(f.Status)), pageSize)
}
