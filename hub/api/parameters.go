package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/landfall-hub/landfall/schema"
)

// maxParameter is the longest value of a query parameter in bytes; cursors hold
// the names of a row.
const maxParameter = 16 << 10

// defaultPage is a page's size where the request names none.
const defaultPage = 100

// parameters are a query's parameters, each of them known and given once.
type parameters map[string]string

// parseParameters reads the query. Parameters that are not in known, given
// twice or holding what is no text are errors.
func parseParameters(r *http.Request, known ...string) (parameters, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, blame(schema.CodeInvalidParameter, "", "the query is not well formed: %v; a percent sign is written %%25", err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make(parameters, len(values))
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, unknownParameter(name, known)
		}
		value := values[name]
		if len(value) != 1 {
			return nil, blame(schema.CodeInvalidParameter, name, "it is given %d times; once is allowed", len(value))
		}
		if len(value[0]) > maxParameter || !printable(value[0]) {
			return nil, blame(schema.CodeInvalidParameter, name, "it is a printable text of at most %d bytes", maxParameter)
		}
		out[name] = value[0]
	}
	return out, nil
}

func unknownParameter(name string, known []string) error {
	shown := shorten(strings.ToValidUTF8(name, "�"), 100)
	if len(known) == 0 {
		return blame(schema.CodeUnknownParameter, shown, "this route has no query parameters")
	}
	return blame(schema.CodeUnknownParameter, shown, "there is no such parameter; there are %s", strings.Join(known, ", "))
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// page reads limit and cursor of a list with a filter.
func (p parameters) page(name string, filter any) (schema.Page, error) {
	page := schema.Page{Limit: defaultPage}
	if text, given := p["limit"]; given {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > schema.MaxPage {
			return page, blame(schema.CodeInvalidParameter, "limit", "limit is a whole number from 1 to %d, not %q", schema.MaxPage, shorten(text, 100))
		}
		page.Limit = n
	}
	if text, given := p["cursor"]; given {
		key, err := parseCursor(text, name, filter)
		if err != nil {
			return page, err
		}
		page.After = key
	}
	return page, nil
}
