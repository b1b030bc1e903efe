package store

import (
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/landfall-hub/landfall/hub/record"
	"github.com/landfall-hub/landfall/schema"
)

// condition is a WHERE clause that grows; its arguments stand in the order of
// their question marks.
type condition struct {
	text string
	args []any
}

func where(text string, args ...any) *condition { return &condition{text, args} }

func (c *condition) and(text string, args ...any) {
	c.text += " AND " + text
	c.args = append(c.args, args...)
}

// in narrows a column to names; nil matches all.
func (c *condition) in(column string, names []string) {
	if names != nil {
		c.and(column+" IN (?)", names)
	}
}

// status narrows to what counts as a status, though the reconcilers of silent
// clusters say otherwise.
func (c *condition) status(s schema.Status, silent []string) {
	switch {
	case s == "":
	case len(silent) == 0:
		c.and("status = ?", string(s))
	case s == schema.StatusUnknown:
		c.and("(status = 'unknown' OR cluster IN (?))", silent)
	default:
		c.and("status = ? AND cluster NOT IN (?)", string(s), silent)
	}
}

// mostFolders is how many folders a statement tells apart; of more it names the
// refs only.
const mostFolders = 64

// under narrows to endpoints in or below folders; nil matches all.
func (c *condition) under(folders []schema.Endpoint) {
	if folders == nil {
		return
	}
	if len(folders) > mostFolders {
		c.and("(repo, ref) IN (?)", refsOf(folders))
		return
	}
	text, args := "", []any(nil)
	for _, e := range folders {
		if text != "" {
			text += " OR "
		}
		text, args = text+"repo = ? AND ref = ?", append(args, e.Repo, e.Ref)
		if e.Path != "" {
			text, args = text+" AND (path = ? OR startsWith(path, ?))", append(args, e.Path, below(e.Path))
		}
	}
	c.and("("+text+")", args...)
}

// refsOf returns each repository and ref of the endpoints once, for an IN.
func refsOf(endpoints []schema.Endpoint) []clickhouse.GroupSet {
	seen := map[[2]string]bool{}
	var refs []clickhouse.GroupSet
	for _, e := range endpoints {
		if at := [2]string{e.Repo, e.Ref}; !seen[at] {
			seen[at] = true
			refs = append(refs, clickhouse.GroupSet{Value: []any{e.Repo, e.Ref}})
		}
	}
	return refs
}

// none reports whether lists that are there and empty let nothing match.
func none(folders []schema.Endpoint, names ...[]string) bool {
	if folders != nil && len(folders) == 0 {
		return true
	}
	for _, n := range names {
		if n != nil && len(n) == 0 {
			return true
		}
	}
	return false
}

// atMost returns the rows, or the error of a query whose answer is too large.
func atMost[T any](rows []T, most int, family string, err error) ([]T, error) {
	if err == nil && len(rows) > most {
		return nil, fmt.Errorf("querying %s: %w of %d", family, record.ErrTooMany, most)
	}
	return rows, err
}
