package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/landfall-hub/landfall/schema"
)

// guard lets in who may call the route. A cluster's name in the path is checked
// before anyone asks whose it is.
func (a *API) guard(rt route) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		caller, err := a.authenticate(w, r)
		if err != nil {
			return err
		}
		setCaller(r.Context(), caller)
		cluster := ""
		if strings.Contains(rt.pattern, "{cluster}") {
			cluster = segment(r, "cluster")
			if err := schema.ValidateClusterName(cluster); err != nil {
				return blame(schema.CodeInvalidParameter, "cluster", "%v", err)
			}
		}
		if err := authorize(rt, caller, cluster); err != nil {
			return err
		}
		return rt.serve(w, r)
	}
}

// authenticate returns who is calling. Where no token is required that is an
// admin, as long as the request cannot come from a web page: a page's own host
// name that points to this machine, or a request across origins.
func (a *API) authenticate(w http.ResponseWriter, r *http.Request) (schema.Token, error) {
	required, err := a.tokens.Required(r.Context())
	if err != nil {
		return schema.Token{}, err
	}
	if !required {
		if !loopbackHost(r.Host) {
			return schema.Token{}, refuse(schema.CodeForbidden, "without tokens the hub answers only to localhost, not to the host name %q; make a token first", shorten(r.Host, 100))
		}
		if http.NewCrossOriginProtection().Check(r) != nil {
			return schema.Token{}, refuse(schema.CodeForbidden, "without tokens the hub takes no requests from web pages of another origin")
		}
		return schema.Token{Role: schema.RoleAdmin}, nil
	}
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="landfall"`)
		return schema.Token{}, refuse(schema.CodeUnauthenticated, "send one header `Authorization: Bearer <token>`")
	}
	scheme, bearer, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer realm="landfall"`)
		return schema.Token{}, refuse(schema.CodeUnauthenticated, "send the header `Authorization: Bearer <token>`")
	}
	caller, err := a.tokens.Authenticate(r.Context(), strings.TrimSpace(bearer))
	if err != nil {
		if problemOf(err, "").Code == schema.CodeUnauthenticated {
			w.Header().Set("WWW-Authenticate", `Bearer realm="landfall", error="invalid_token"`)
		}
		return schema.Token{}, err
	}
	return caller, nil
}

func authorize(rt route, caller schema.Token, cluster string) error {
	if caller.Role == schema.RoleAdmin {
		return nil
	}
	if !slices.Contains(rt.roles, caller.Role) {
		who := "an admin"
		for _, role := range rt.roles {
			who += " or " + string(role)
		}
		return refuse(schema.CodeForbidden, "this takes %s token, and yours is of the role %s", who, caller.Role)
	}
	if caller.Role == schema.RoleAgent && (caller.Cluster == "" || caller.Cluster != cluster) {
		return refuse(schema.CodeForbidden, "this agent's token is for the cluster %q, not %q", caller.Cluster, cluster)
	}
	return nil
}

// loopbackHost reports whether a Host header names this machine in a way that
// no other machine's name server can.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// segment returns a path segment as it was meant, without escapes; "" for one
// whose escapes are broken.
func segment(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	plain, err := url.PathUnescape(value)
	if err != nil {
		return ""
	}
	return plain
}
