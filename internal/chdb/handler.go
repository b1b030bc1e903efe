package chdb

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
)

// insertPiece is how much of an INSERT's data is handed over at once. The
// engine keeps at most 16 pieces that it has not parsed.
const insertPiece = 1 << 20

// maxDrain bounds what is read and thrown away of the body of a failed INSERT.
const maxDrain = 1 << 30

// NewHandler returns a handler that speaks ClickHouse's HTTP interface:
// statements in the query parameter or the body, `/ping`, parameters, settings,
// Native and every other format, gzip. External tables, sessions that outlive a
// request and ClickHouse's own block compression are refused with
// NOT_IMPLEMENTED.
func NewHandler(db *Database, credentials Credentials, log *slog.Logger) http.Handler {
	h := &handler{db: db, credentials: credentials, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("/ping", ping)
	mux.HandleFunc("/{$}", h.serve)
	return mux
}

type handler struct {
	db          *Database
	credentials Credentials
	log         *slog.Logger
}

func ping(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	_, _ = io.WriteString(w, "Ok.\n")
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
		return
	}
	if r.Method == http.MethodGet && r.URL.RawQuery == "" {
		ping(w, r)
		return
	}
	out := newResponse(w, statusOf)
	if !h.credentials.admit(r) {
		out.fail(failure(codeAuthentication, "the user or the password is wrong"))
		return
	}
	req, err := readRequest(r)
	if err != nil {
		out.fail(err)
		return
	}
	out.describe(req)
	if err := h.run(r.Context(), req, out); err != nil {
		h.log.Debug("a statement failed", "err", err)
		out.fail(err)
		return
	}
	out.finish()
}

func (h *handler) run(ctx context.Context, req *request, out *response) error {
	s, err := h.db.session(ctx, req.database, req.settings)
	if err != nil {
		return err
	}
	defer s.end()
	defer s.watch(ctx)()
	if err := h.answer(s, req, out); err != nil {
		return err
	}
	// A statement that was told to stop may end without an error, with half of
	// its rows.
	return s.interrupted(ctx)
}

func (h *handler) answer(s *session, req *request, out *response) error {
	if req.insert {
		written, err := s.insert(req)
		if err != nil {
			// A server that answers before it has read everything resets the
			// connection, and the client may lose the answer.
			_, _ = io.CopyN(io.Discard, req.body, maxDrain)
			return err
		}
		out.header.Set("X-ClickHouse-Summary", `{"written_rows":"`+strconv.FormatUint(written, 10)+`"}`)
		return nil
	}
	if req.protocol && isHello(req.head) {
		answer, err := s.hello()
		if err != nil {
			return err
		}
		return out.write(answer)
	}
	return s.execute(req.head, req.output, req.params, out.write)
}

// insert feeds a request's body to the engine. Nothing is acknowledged unless
// the body came to its proper end.
func (s *session) insert(req *request) (uint64, error) {
	if err := s.db.space.before(); err != nil {
		return 0, err
	}
	written, err := s.store(req)
	if err != nil {
		return 0, err
	}
	return written, s.db.space.after()
}

func (s *session) store(req *request) (uint64, error) {
	stream, err := s.conn.insert(req.head, req.format, req.params)
	if err != nil {
		return 0, err
	}
	defer stream.close()
	size, err := feed(stream.append, req.body)
	if err != nil {
		return 0, failure(codeCannotReadAll, "reading the data of an INSERT after %d bytes: %v", size, err)
	}
	if size == 0 && req.format == "Native" {
		// A client that fails to encode its block sends an empty body and takes
		// the answer for a success.
		return 0, failure(codeCannotReadAll, "the INSERT came without data")
	}
	return stream.finish()
}

// feed copies a body into an INSERT and returns the bytes read. A failed INSERT
// ends the copying early and is no error here: finish reports it. A body that
// breaks off is an error, always: it must not be stored as if it were whole.
func feed(push func([]byte) bool, body io.Reader) (int64, error) {
	piece := make([]byte, insertPiece)
	var size int64
	for {
		n, err := fill(body, piece)
		size += int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			return size, err
		}
		if !push(piece[:n]) || err != nil {
			return size, nil
		}
	}
}

// fill reads until the piece is full, and returns io.EOF at the body's proper
// end. io.ReadFull will not do: it gives io.ErrUnexpectedEOF at the end as well
// as for a body that breaks off.
func fill(body io.Reader, piece []byte) (int, error) {
	n := 0
	for n < len(piece) {
		m, err := body.Read(piece[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
