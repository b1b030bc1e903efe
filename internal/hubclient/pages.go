package hubclient

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/landfall-hub/landfall/schema"
)

// page is the form of every list's answer.
type page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// filter returns the query of names and values in turn, without the empty ones.
func filter(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// pages yields the rows of a list over all its pages. A page holds size rows,
// or schema.MaxPage where size is not between 1 and that. The next page is asked
// for when the reader comes to it; after an error nothing follows.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values, size int) iter.Seq2[T, error] {
	if size < 1 || size > schema.MaxPage {
		size = schema.MaxPage
	}
	return func(yield func(T, error) bool) {
		var none T
		values := url.Values{}
		maps.Copy(values, query)
		values.Set("limit", strconv.Itoa(size))
		for {
			var p page[T]
			k := call{method: http.MethodGet, path: path, query: values, timeout: answerTimeout, into: &p}
			if err := c.do(ctx, k); err != nil {
				yield(none, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if p.NextCursor == "" {
				return
			}
			if p.NextCursor == values.Get("cursor") {
				yield(none, c.failed(ctx, k, "reading the list", fmt.Errorf("%w: the next page is the same page", ErrBadAnswer)))
				return
			}
			values.Set("cursor", p.NextCursor)
		}
	}
}
