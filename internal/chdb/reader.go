package chdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What readers may use together is bounded, so that the hub always gets on.
const (
	readersRunning = 4
	readersWaiting = 32
	// readerTime is how long one statement may run. What its client is slow to
	// take counts.
	readerTime = 30 * time.Second
	// readerGrace is how much later it is stopped from here, should it not have
	// ended by itself.
	readerGrace  = 5 * time.Second
	readerRows   = 10_000_000
	readerBytes  = 2 << 30
	readerText   = 256 << 10
	readerSpill  = 1 << 30
	minReaderMem = 256 << 20
	maxReaderMem = 2 << 30
)

// readerPassed are settings that readers may give as they like: they change
// how an answer is written and nothing else.
var readerPassed = map[string]bool{
	"session_timezone": true, "date_time_output_format": true, "extremes": true, "join_use_nulls": true, "final": true,
	"format_csv_delimiter": true, "output_format_json_quote_64bit_integers": true,
	"output_format_json_quote_64bit_floats": true, "output_format_json_quote_denormals": true,
	"output_format_json_quote_decimals": true, "output_format_json_named_tuples_as_objects": true,
	"output_format_json_array_of_rows": true, "output_format_write_statistics": true,
}

// readerIgnored are settings that clients send by themselves and that mean
// nothing here.
var readerIgnored = map[string]bool{
	"readonly": true, "log_comment": true, "add_http_cors_header": true, "send_progress_in_http_headers": true,
	"cancel_http_readonly_queries_on_client_close": true, "http_headers_progress_interval_ms": true,
}

// readerHandler serves statements of readers from outside.
//
// Two guards stand one behind the other. ClickHouse's own access control: the
// session has the role reader, with SELECT on the readers' tables, and is
// readonly with limits that a statement cannot lift. And a check of what the
// statement says, in ClickHouse's own reading of it, against lists of what is
// allowed: the access control asks no right for the tables of the database
// system, for files read by the function file, and for INTO OUTFILE.
type readerHandler struct {
	db          *Database
	credentials Credentials
	rules       treeRules
	turns       *turns
	limits      map[string]uint64
	log         *slog.Logger
}

// NewReaderHandler returns a handler for readers from outside. It speaks the
// same HTTP interface as NewHandler, for single SELECT, SHOW, DESCRIBE and
// EXISTS statements on what the database's ReaderAccess names. It first tries
// out whether the library keeps the reader's role within its bounds, and fails
// if it does not.
func NewReaderHandler(ctx context.Context, db *Database, credentials Credentials, log *slog.Logger) (http.Handler, error) {
	if db.reader == nil {
		return nil, errors.New("the database was opened without access for readers")
	}
	if credentials.User == "" || credentials.Password == "" {
		return nil, errors.New("readers need a user and a password")
	}
	h := &readerHandler{
		db: db, credentials: credentials, log: log, turns: newTurns(readersRunning, readersWaiting),
		rules: treeRules{database: db.reader.Database, tables: db.reader.Tables},
	}
	if err := h.learn(ctx); err != nil {
		return nil, fmt.Errorf("preparing for readers: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ping", ping)
	mux.HandleFunc("/{$}", h.serve)
	return mux, nil
}

// learn asks the engine for its functions and memory, and tries out the role.
func (h *readerHandler) learn(ctx context.Context) error {
	s, err := h.db.open(ctx, h.turns)
	if err != nil {
		return err
	}
	defer s.end()
	functions, err := s.conn.run("SELECT lower(name) FROM system.functions", "TabSeparatedRaw")
	if err != nil {
		return fmt.Errorf("listing the functions: %w", err)
	}
	h.rules.forbidden = map[string]bool{}
	for _, name := range strings.Fields(string(functions)) {
		if !callable(name) {
			h.rules.forbidden[name] = true
		}
	}
	memory, err := s.conn.run("SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage'", "TabSeparatedRaw")
	if err != nil {
		return fmt.Errorf("asking for the memory: %w", err)
	}
	if answer, err := s.conn.run("CHECK GRANT CREATE FUNCTION ON *.*", "TabSeparatedRaw"); err != nil || string(answer) != "0\n" {
		return fmt.Errorf("this libchdb does not hold readers back: functions can be made: %s (%v)", answer, err) //nolint:errorlint // it may be nil
	}
	total, err := strconv.ParseUint(strings.TrimSpace(string(memory)), 10, 64)
	if err != nil {
		return fmt.Errorf("asking for the memory: %w", err)
	}
	h.limits = map[string]uint64{
		"max_execution_time": uint64(readerTime / time.Second),
		"max_memory_usage":   min(max(total/8, minReaderMem), maxReaderMem),
		"max_threads":        uint64(max(1, runtime.NumCPU()/2)),
		"max_result_rows":    readerRows,
		"max_result_bytes":   readerBytes,
	}
	return h.tryOut(s)
}

// tryOut makes the session a reader's and sees that it can do nothing that a
// reader must not do.
func (h *readerHandler) tryOut(s *session) error {
	if err := h.restrict(s, nil); err != nil {
		return err
	}
	for sql, want := range map[string]string{
		"SELECT arrayStringConcat(enabledRoles(), ',')":   readerRole,
		"CHECK GRANT SELECT ON *.*":                       "0",
		"CHECK GRANT SELECT ON default.*":                 "0",
		"CHECK GRANT INSERT ON *.*":                       "0",
		"CHECK GRANT CREATE TABLE ON *.*":                 "0",
		"CHECK GRANT CREATE TEMPORARY TABLE ON *.*":       "0",
		"CHECK GRANT FILE ON *.*":                         "0",
		"CHECK GRANT URL ON *.*":                          "0",
		"CHECK GRANT KILL QUERY ON *.*":                   "0",
		"CHECK GRANT SYSTEM ON *.*":                       "0",
		"SELECT toString(getSetting('readonly'))":         "1",
		"SELECT toString(getSetting('max_result_rows'))":  strconv.Itoa(readerRows),
		"SELECT toString(getSetting('max_query_size'))":   strconv.Itoa(readerText * 2),
		"SELECT toString(getSetting('enable_analyzer'))":  "true",
		"SELECT toString(getSetting('implicit_select'))":  "false",
		"SELECT formatQuerySingleLine('select /**/ 1 ;')": "SELECT 1",
	} {
		answer, err := s.conn.run(sql, "TabSeparatedRaw")
		if got := strings.TrimSpace(string(answer)); err != nil || got != want {
			return fmt.Errorf("this libchdb does not hold readers back: %s gives %q (%v), not %q", sql, got, err, want) //nolint:errorlint // it may be nil
		}
	}
	if _, err := s.conn.run("SET max_threads = 99", ""); err == nil {
		return errors.New("this libchdb does not hold readers back: a setting can be changed")
	}
	for sql, allowed := range map[string]bool{
		"SELECT 1": true, "SELECT file('x')": false, "SELECT arrayMap(file, ['x'])": false, "SELECT * FROM system.processes": false,
		"SELECT 1 IN system.processes": false, "SELECT * FROM url('x')": false, "SELECT 1 SETTINGS max_threads = 1": false,
	} {
		if _, err := h.check(s, sql, nil); (err == nil) != allowed {
			return fmt.Errorf("this libchdb does not hold readers back: for %s the check says %v", sql, err) //nolint:errorlint // it may be nil
		}
	}
	return nil
}

// restrict gives up all rights of a session but the reader's.
func (h *readerHandler) restrict(s *session, given []setting) error {
	settings, err := h.settings(given)
	if err != nil {
		return err
	}
	if err := s.prepare("", settings); err != nil {
		return err
	}
	for _, sql := range []string{"SET ROLE " + readerRole, "SET readonly = 1"} {
		if _, err := s.conn.run(sql, ""); err != nil {
			return fmt.Errorf("restricting a reader's session: %w", err)
		}
	}
	return nil
}

// settings puts the limits together with what a reader asked for, which can
// lower them only.
func (h *readerHandler) settings(given []setting) ([]setting, error) {
	limits := maps.Clone(h.limits)
	settings := []setting{
		{"timeout_overflow_mode", "throw"}, {"result_overflow_mode", "throw"}, {"max_query_size", strconv.Itoa(2 * readerText)},
		{"max_temporary_data_on_disk_size_for_query", strconv.Itoa(readerSpill)},
		{"allow_introspection_functions", "0"}, {"implicit_select", "0"}, {"enable_analyzer", "1"}, {"allow_ddl", "0"},
	}
	for _, one := range given {
		limit, limited := limits[one.name]
		switch {
		case limited:
			asked, err := strconv.ParseFloat(one.value, 64)
			if err != nil || !(asked >= 0) {
				return nil, failure(codeBadArguments, "%s=%s is no number", one.name, cut(one.value))
			}
			if asked >= 1 && asked < float64(limit) {
				limits[one.name] = uint64(asked)
			}
		case readerPassed[one.name]:
			settings = append(settings, one)
		case !readerIgnored[one.name]:
			return nil, refusal("the setting %s cannot be given here", cut(one.name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		settings = append(settings, setting{name, strconv.FormatUint(limits[name], 10)})
	}
	return settings, nil
}

func (h *readerHandler) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
		return
	}
	if r.Method == http.MethodGet && r.URL.RawQuery == "" {
		ping(w, r)
		return
	}
	out := newResponse(w, readerStatusOf)
	if !h.credentials.admit(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="landfall"`)
		out.fail(failure(codeAuthentication, "the user or the password is wrong"))
		return
	}
	req, err := readRequest(r)
	if err != nil {
		out.fail(err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readerTime+readerGrace)
	defer cancel()
	if err := h.run(ctx, req, out); err != nil {
		h.log.Debug("a reader's statement failed", "err", err)
		out.fail(err)
		return
	}
	out.finish()
}

// readerStatusOf tells people with curl whose fault it was.
func readerStatusOf(code int) int {
	switch code {
	case codeAccessDenied, codeReadonly:
		return http.StatusForbidden
	case codeQueryTooLarge, codeBadArguments, codeUnknownFunction, codeUnknownName, codeNoParameter:
		return http.StatusBadRequest
	case codeUnknownTable:
		return http.StatusNotFound
	default:
		return statusOf(code)
	}
}

func (h *readerHandler) run(ctx context.Context, req *request, out *response) error {
	if req.insert {
		return refusal("INSERT cannot be run here")
	}
	if len(req.head) > readerText {
		return failure(codeQueryTooLarge, "the statement is longer than %d bytes", readerText)
	}
	if req.database != "" && req.database != "default" && req.database != h.rules.database {
		return refusal("the database %s cannot be read here", cut(req.database))
	}
	s, err := h.db.open(ctx, h.turns)
	if err != nil {
		return err
	}
	defer s.end()
	defer s.watch(ctx)()
	if err := s.use(h.rules.database); err != nil {
		return err
	}
	if err := h.restrict(s, req.settings); err != nil {
		return err
	}
	if req.protocol && isHello(req.head) {
		out.describe(req)
		answer, err := s.hello()
		if err != nil {
			return err
		}
		return out.write(answer)
	}
	statement, err := h.check(s, req.head, req.params)
	if err != nil {
		return err
	}
	if statement.format != "" {
		req.output = statement.format
	}
	if !readerFormats[strings.ToLower(req.output)] {
		return refusal("the format %s cannot be used here", cut(req.output))
	}
	out.describe(req)
	if err := s.execute(statement.text, req.output, req.params, out.write); err != nil {
		return err
	}
	return s.interrupted(ctx)
}

// check returns the statement as ClickHouse writes it, or why it is refused.
// What was checked is what must be run, not what came in.
func (h *readerHandler) check(s *session, sql string, params []Param) (readerStatement, error) {
	text := Param{Name: "statement", Value: escapeParam(sql)}
	canonical, err := s.conn.runWithParams("SELECT formatQuery({statement:String})", "RawBLOB", []Param{text})
	if err != nil {
		return readerStatement{}, err
	}
	statement, err := newReaderStatement(string(canonical))
	if err != nil {
		return readerStatement{}, err
	}
	if !statement.isSelect() {
		return statement, statement.checkShow(h.rules)
	}
	// In brackets nothing but a query is understood: no INTO OUTFILE, no second
	// statement. Nothing of it is run yet.
	tree, err := s.conn.runWithParams("EXPLAIN QUERY TREE run_passes = 0 SELECT * FROM (\n"+statement.text+"\n)", "TabSeparatedRaw", params)
	if err != nil {
		return readerStatement{}, err
	}
	return statement, h.rules.check(string(tree))
}

// escapeParam writes a value as parameters are read: as a field of TSV.
func escapeParam(value string) string { return paramEscaper.Replace(value) }

var paramEscaper = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`, "\b", `\b`, "\f", `\f`, "'", `\'`)
