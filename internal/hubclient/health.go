package hubclient

import (
	"context"
	"net/http"
)

// Health returns nil when the hub's process answers.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/healthz", timeout: answerTimeout})
}

// Ready returns nil when the hub can store reports and answer questions.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/readyz", timeout: answerTimeout})
}
