package schema

// Code is the stable name of an error, in a problem's "code".
type Code string

// The error codes of the API.
const (
	CodeInvalidJSON       Code = "invalid_json"       // the body is not JSON
	CodeUnknownField      Code = "unknown_field"      // a member nobody knows
	CodeMissingField      Code = "missing_field"      // a required member is absent
	CodeInvalidField      Code = "invalid_field"      // a member's value is not allowed
	CodeInvalidParameter  Code = "invalid_parameter"  // a query parameter or path segment is not allowed
	CodeUnknownParameter  Code = "unknown_parameter"  // a query parameter nobody knows
	CodeInvalidCommit     Code = "invalid_commit"     // not a full commit id
	CodeInvalidRepo       Code = "invalid_repo"       // not a repository URL
	CodeInvalidRef        Code = "invalid_ref"        // not a ref
	CodeInvalidPath       Code = "invalid_path"       // not a path, or one that climbs out
	CodeInvalidRevision   Code = "invalid_revision"   // a revision that is no text
	CodeInvalidCursor     Code = "invalid_cursor"     // a cursor this list never gave
	CodeInvalidDescriptor Code = "invalid_descriptor" // a descriptor is not as it should be
	CodeDuplicate         Code = "duplicate"          // one reconciler twice in a report
	CodeBodyTooLarge      Code = "body_too_large"     // over the limit, before or after decompression
	CodeUnsupportedMedia  Code = "unsupported_media"  // a content type or encoding nobody reads
	CodeUnauthenticated   Code = "unauthenticated"    // no token, or an unknown one
	CodeForbidden         Code = "forbidden"          // the token's role does not allow it
	CodeNotFound          Code = "not_found"          // no such route or thing
	CodeMethodNotAllowed  Code = "method_not_allowed" // the route has other methods
	CodeNotRegistered     Code = "not_registered"     // the cluster has no epoch yet
	CodeFutureEpoch       Code = "future_epoch"       // an epoch that the hub never issued
	CodeDecommissioned    Code = "decommissioned"     // the cluster was taken out
	CodeConflict          Code = "conflict"           // it contradicts what is stored
	CodeUnavailable       Code = "unavailable"        // the store is down; try again
	CodeOverloaded        Code = "overloaded"         // a queue is full; try again later
	CodeInternal          Code = "internal"           // a fault of the hub's own
)

// Problem is the body of an error answer (RFC 9457, application/problem+json).
type Problem struct {
	// Type is "about:blank": the code tells problems apart.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail names what is wrong and how to mend it.
	Detail string `json:"detail"`
	Code   Code   `json:"code"`
	// Pointer is the JSON pointer (RFC 6901) of the member to blame, or "".
	Pointer string `json:"pointer,omitempty"`
	// Parameter is the query parameter or path segment to blame, or "".
	Parameter string `json:"parameter,omitempty"`
	// Errors are the complaints about a body of documents, at most 100.
	Errors []FileError `json:"errors,omitempty"`
}

// Error makes a problem an error.
func (p *Problem) Error() string {
	switch {
	case p.Pointer != "":
		return string(p.Code) + " at " + p.Pointer + ": " + p.Detail
	case p.Parameter != "":
		return string(p.Code) + " in " + p.Parameter + ": " + p.Detail
	}
	return string(p.Code) + ": " + p.Detail
}

// Invalid is a complaint about one member of a message.
type Invalid struct {
	Code Code
	// Pointer is the member's JSON pointer.
	Pointer string
	// Detail says what is wrong and what to write instead.
	Detail string
}

// Error returns the complaint with its place.
func (e *Invalid) Error() string { return string(e.Code) + " at " + e.Pointer + ": " + e.Detail }
