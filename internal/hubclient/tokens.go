package hubclient

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/landfall-hub/landfall/schema"
)

// CreateToken makes a token. Its secret is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, r schema.TokenRequest) (schema.Token, error) {
	var answer schema.Token
	k := call{method: http.MethodPost, path: apiPrefix + "/tokens", timeout: answerTimeout, into: &answer}
	if err := c.doJSON(ctx, k, r); err != nil {
		return answer, err
	}
	if answer.ID == "" || answer.Secret == "" {
		return answer, c.failed(ctx, k, "reading the answer", fmt.Errorf("%w: it holds no token", ErrBadAnswer))
	}
	return answer, nil
}

// Tokens lists the tokens without their secrets, pageSize at a time (see pages).
func (c *Client) Tokens(ctx context.Context, pageSize int) iter.Seq2[schema.Token, error] {
	return pages[schema.Token](ctx, c, apiPrefix+"/tokens", nil, pageSize)
}

// RevokeToken ends a token by its id.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	if id == "" || strings.Trim(id, ".") == "" {
		return fmt.Errorf("%q is no token's id", id)
	}
	return c.do(ctx, call{method: http.MethodDelete, path: apiPrefix + "/tokens/" + url.PathEscape(id), timeout: answerTimeout})
}
