package api

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

// maxTokenName is the longest name of a token in bytes.
const maxTokenName = 253

// createToken serves POST /tokens.
func (a *API) createToken(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	var req schema.TokenRequest
	release, err := a.decode(w, r, &req)
	defer release()
	if err != nil {
		return err
	}
	if err := checkTokenRequest(req); err != nil {
		return err
	}
	token, err := a.tokens.Create(r.Context(), req)
	if err != nil {
		return err
	}
	a.logger.LogAttrs(r.Context(), slog.LevelInfo, "token created", slog.String("token", token.ID), slog.String("role", string(token.Role)),
		slog.String("cluster", token.Cluster), slog.String("by", callerOf(r.Context()).ID))
	return a.answer(w, r, http.StatusCreated, token)
}

func checkTokenRequest(req schema.TokenRequest) error {
	switch {
	case len(req.Name) > maxTokenName || !printable(req.Name) || !utf8.ValidString(req.Name):
		return &schema.Invalid{Code: schema.CodeInvalidField, Pointer: "/name", Detail: "a name is a printable text of at most 253 bytes"}
	case req.Role == "":
		return &schema.Invalid{Code: schema.CodeMissingField, Pointer: "/role", Detail: "it is missing; write agent, reader, pipeline or admin"}
	case !req.Role.Valid():
		return &schema.Invalid{Code: schema.CodeInvalidField, Pointer: "/role", Detail: "role is agent, reader, pipeline or admin, not " + shorten(string(req.Role), 100)}
	case req.Role != schema.RoleAgent && req.Cluster != "":
		return &schema.Invalid{Code: schema.CodeInvalidField, Pointer: "/cluster", Detail: "only an agent's token belongs to a cluster"}
	case req.Role == schema.RoleAgent && req.Cluster == "":
		return &schema.Invalid{Code: schema.CodeMissingField, Pointer: "/cluster", Detail: "it is missing; an agent's token belongs to one cluster"}
	case req.Role != schema.RoleAgent:
		return nil
	}
	if err := schema.ValidateClusterName(req.Cluster); err != nil {
		return &schema.Invalid{Code: schema.CodeInvalidField, Pointer: "/cluster", Detail: err.Error()}
	}
	return nil
}

// listTokens serves GET /tokens, in the order of their ids.
func (a *API) listTokens(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParameters(r, "limit", "cursor")
	if err != nil {
		return err
	}
	page, err := p.page("tokens", struct{}{})
	if err != nil {
		return err
	}
	all, err := a.tokens.List(r.Context())
	if err != nil {
		return err
	}
	var next []string
	if len(page.After) > 0 {
		after, found := slices.BinarySearchFunc(all, page.After[0], func(t schema.Token, id string) int { return strings.Compare(t.ID, id) })
		if found {
			after++
		}
		all = all[after:]
	}
	if len(all) > page.Limit {
		all = all[:page.Limit]
		next = []string{all[page.Limit-1].ID}
	}
	return answerList(a, w, r, "tokens", struct{}{}, all, next)
}

// revokeToken serves DELETE /tokens/{id}.
func (a *API) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseParameters(r); err != nil {
		return err
	}
	id := segment(r, "id")
	if err := a.tokens.Revoke(r.Context(), id); err != nil {
		return err
	}
	a.logger.LogAttrs(r.Context(), slog.LevelInfo, "token revoked", slog.String("token", id), slog.String("by", callerOf(r.Context()).ID))
	w.WriteHeader(http.StatusNoContent)
	return nil
}
