package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// What one agent may ask of an API server: enough to list a few thousand
// objects by pages within seconds, too little to be noticed.
const (
	maxQPS   = 20
	maxBurst = 40
)

// lookTimeout bounds a look at what a group of the API server serves.
const lookTimeout = 10 * time.Second

// A client reads objects of any kind, and what is served, over one set of
// connections and within one rate.
type client struct {
	dynamic.Interface
	rest rest.Interface
	http *http.Client
}

// newClient fills in what the configuration leaves open. Warnings of the API
// server are dropped: they speak of deprecated versions, and which version is
// watched follows what is served.
func newClient(config *rest.Config) (*client, error) {
	c := dynamic.ConfigFor(config)
	c.GroupVersion, c.APIPath = nil, "/"
	if config.UserAgent == "" {
		c.UserAgent = "landfall-agent"
	}
	if c.QPS == 0 && c.RateLimiter == nil {
		c.QPS, c.Burst = maxQPS, maxBurst
	}
	if c.WarningHandler == nil && c.WarningHandlerWithContext == nil {
		c.WarningHandler = rest.NoWarnings{}
	}
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("preparing connections to the API server: %w", err)
	}
	r, err := rest.UnversionedRESTClientForConfigAndClient(c, h)
	if err != nil {
		return nil, fmt.Errorf("preparing a client of the API server: %w", err)
	}
	return &client{Interface: dynamic.New(r), rest: r, http: h}, nil
}

// served returns the version to watch each of a group's kinds in, by resource:
// the one that the API server prefers if it has the kind, else the next. A kind
// that is not served is missing. An error leaves it open what is served.
func (c *client) served(ctx context.Context, group string, kinds []Kind) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found := map[string]string{}
	var g metav1.APIGroup
	if err := c.get(ctx, &g, "/apis", group); apierrors.IsNotFound(err) {
		return found, nil
	} else if err != nil {
		return nil, fmt.Errorf("asking the API server which versions of %s it serves: %w", group, err)
	}
	if g.Name != group { // an answer of something else than an API server
		return nil, fmt.Errorf("asking the API server which versions of %s it serves: the answer is none", group)
	}
	for _, version := range versions(g) {
		if len(found) == len(kinds) {
			break
		}
		var resources metav1.APIResourceList
		if err := c.get(ctx, &resources, "/apis", group, version); apierrors.IsNotFound(err) {
			continue // it went since
		} else if err != nil {
			return nil, fmt.Errorf("asking the API server which kinds of %s/%s it serves: %w", group, version, err)
		}
		for _, k := range kinds {
			if _, ok := found[k.Resource]; !ok && slices.ContainsFunc(resources.APIResources, k.isServedAs) {
				found[k.Resource] = version
			}
		}
	}
	return found, nil
}

func (c *client) get(ctx context.Context, into any, path ...string) error {
	raw, err := c.rest.Get().AbsPath(path...).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// versions returns a group's versions, the preferred one first.
func versions(g metav1.APIGroup) []string {
	var list []string
	if g.PreferredVersion.Version != "" {
		list = append(list, g.PreferredVersion.Version)
	}
	for _, v := range g.Versions {
		if !slices.Contains(list, v.Version) {
			list = append(list, v.Version)
		}
	}
	return list
}

// isServedAs reports whether a resource is this kind and can be followed.
func (k Kind) isServedAs(r metav1.APIResource) bool {
	return r.Name == k.Resource && r.Kind == k.Kind && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}
