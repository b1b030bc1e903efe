package api

import (
	"net/http"

	"github.com/landfall-hub/landfall/schema"
)

// documents are the types of a body of descriptors.
var documents = []string{"application/yaml", "application/json", "application/x-yaml", "text/yaml"}

// pushDescriptors serves POST /descriptors.
func (a *API) pushDescriptors(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParameters(r, "repo", "ref", "commit")
	if err != nil {
		return err
	}
	at, err := p.endpoint()
	if err != nil {
		return err
	}
	commit, err := p.commit()
	if err != nil {
		return err
	}
	var answer schema.PushedDescriptors
	release, err := a.body(w, r, a.bodies, documents, func(body []byte) error {
		answer, err = a.descriptors.Push(r.Context(), at, commit, body)
		return err
	})
	release()
	if err != nil {
		return err
	}
	return a.answer(w, r, http.StatusAccepted, answer)
}
