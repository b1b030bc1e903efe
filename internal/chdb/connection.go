package chdb

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Param is one value for a {name:Type} placeholder, in the text form that
// ClickHouse's HTTP interface takes (TSV escapes).
type Param struct {
	Name  string
	Value string
}

// connection is one session of the library. It runs one statement at a time,
// and its methods must not be called at once by several goroutines.
type connection struct {
	api *api
	// outer is the address of the handle, which chdb_close_conn takes; handle is
	// what all other calls take.
	outer  uintptr
	handle uintptr
}

// connect opens a session. The first one of a process boots the engine on the
// folder that --path names.
func connect(lib *api, args ...string) (*connection, error) {
	argv := make([]*byte, 0, len(args)+2)
	for _, arg := range append([]string{"landfall-engine"}, args...) {
		argv = append(argv, &append([]byte(arg), 0)[0])
	}
	outer := lib.connect(int32(len(argv)), unsafe.Pointer(&argv[0])) //nolint:gosec // a handful
	runtime.KeepAlive(argv)
	if outer == 0 {
		return nil, errors.New("libchdb refused the connection; its own words are on standard error")
	}
	handle := *(*uintptr)(address(outer))
	if handle == 0 {
		return nil, errors.New("libchdb returned an empty connection")
	}
	return &connection{api: lib, outer: outer, handle: handle}, nil
}

func (c *connection) close() {
	c.api.closeConn(c.outer)
	c.outer, c.handle = 0, 0
}

// run executes one statement and returns its whole output in the given format.
// It is for statements of this package's own, whose output is small.
func (c *connection) run(sql, format string) ([]byte, error) {
	return c.runWithParams(sql, format, nil)
}

// runWithParams is run with values for the placeholders of the statement.
func (c *connection) runWithParams(sql, format string, params []Param) ([]byte, error) {
	p := packParams(params)
	result := c.api.query(c.handle, pointer(sql), uintptr(len(sql)), pointer(format), uintptr(len(format)),
		p.names(), p.nameLens(), p.values(), p.valueLens(), uintptr(len(params)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	runtime.KeepAlive(p)
	return c.take(result)
}

// take copies a result's bytes out of the library and frees it.
func (c *connection) take(result uintptr) ([]byte, error) {
	view, err := c.view(result)
	if err != nil {
		return nil, err
	}
	defer c.api.resultDestroy(result)
	return bytes.Clone(view), nil
}

// view returns a result's bytes where they lie in the library, valid until the
// result is destroyed. A failed result is destroyed here.
func (c *connection) view(result uintptr) ([]byte, error) {
	if result == 0 {
		return nil, errors.New("libchdb returned no result")
	}
	if text := cString(c.api.resultError(result)); text != "" {
		c.api.resultDestroy(result)
		return nil, newException(text)
	}
	size := c.api.resultLength(result)
	if size == 0 {
		return nil, nil
	}
	buffer := c.api.resultBuffer(result)
	if buffer == 0 {
		c.api.resultDestroy(result)
		return nil, fmt.Errorf("libchdb returned %d bytes without an address", size)
	}
	return unsafe.Slice((*byte)(address(buffer)), size), nil
}

// rows is the output of a running statement, in pieces of about one block.
type rows struct {
	conn   *connection
	stream uintptr
	// piece is the result whose bytes were handed out last, 0 when there is none.
	piece uintptr
	done  bool
}

// query starts a statement. The caller must close the rows before the
// connection runs anything else.
func (c *connection) query(sql, format string, params []Param) (*rows, error) {
	p := packParams(params)
	stream := c.api.streamQuery(c.handle, pointer(sql), uintptr(len(sql)), pointer(format), uintptr(len(format)),
		p.names(), p.nameLens(), p.values(), p.valueLens(), uintptr(len(params)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	runtime.KeepAlive(p)
	if stream == 0 {
		return nil, errors.New("libchdb returned no result")
	}
	if text := cString(c.api.resultError(stream)); text != "" {
		c.api.resultDestroy(stream)
		return nil, newException(text)
	}
	return &rows{conn: c, stream: stream}, nil
}

// next returns the next piece, and an empty one at the end. A piece is the
// library's memory, valid until next or close is called.
func (r *rows) next() ([]byte, error) {
	r.release()
	if r.done {
		return nil, nil
	}
	result := r.conn.api.streamFetch(r.conn.handle, r.stream)
	piece, err := r.conn.view(result)
	if err != nil {
		r.done = true
		return nil, err
	}
	r.piece = result
	r.done = len(piece) == 0
	return piece, nil
}

// release frees the piece that was handed out last.
func (r *rows) release() {
	if r.piece != 0 {
		r.conn.api.resultDestroy(r.piece)
		r.piece = 0
	}
}

// close cancels what still runs and frees the stream.
func (r *rows) close() {
	r.release()
	if !r.done {
		r.conn.api.streamCancel(r.conn.handle, r.stream)
	}
	r.conn.api.resultDestroy(r.stream)
	r.stream = 0
}

// insertion is a running INSERT that takes its data in pieces.
type insertion struct {
	conn   *connection
	stream uintptr
	done   bool
}

// insert starts an INSERT whose data follows by append, in the given input
// format. The statement itself carries neither data nor a FORMAT clause.
func (c *connection) insert(sql, format string, params []Param) (*insertion, error) {
	p := packParams(params)
	stream := c.api.insert(c.handle, pointer(sql), uintptr(len(sql)), pointer(format), uintptr(len(format)),
		p.names(), p.nameLens(), p.values(), p.valueLens(), uintptr(len(params)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	runtime.KeepAlive(p)
	if stream == 0 {
		return nil, errors.New("libchdb returned no insert stream")
	}
	if text := cString(c.api.insertError(stream)); text != "" {
		c.api.insertDestroy(stream)
		return nil, newException(text)
	}
	return &insertion{conn: c, stream: stream}, nil
}

// append hands over one piece of data; it waits while the engine is behind. It
// returns false when the INSERT has failed; finish then says why.
func (i *insertion) append(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	state := i.conn.api.insertAppend(i.stream, unsafe.Pointer(&data[0]), uintptr(len(data)))
	runtime.KeepAlive(data)
	return state == 0
}

// finish stores the data and returns the number of rows written, those of
// materialized views included.
func (i *insertion) finish() (uint64, error) {
	i.done = true
	result := i.conn.api.insertDone(i.stream)
	if result == 0 {
		return 0, errors.New("libchdb returned no result")
	}
	defer i.conn.api.resultDestroy(result)
	if text := cString(i.conn.api.resultError(result)); text != "" {
		return 0, newException(text)
	}
	return i.conn.api.resultRowsWritten(result), nil
}

// close gives up an INSERT that was not finished and frees it.
func (i *insertion) close() {
	if !i.done {
		i.conn.api.insertCancel(i.stream)
	}
	i.conn.api.insertDestroy(i.stream)
	i.stream = 0
}

// packedParams lays parameters out as the parallel arrays the library reads.
type packedParams struct {
	nameStarts, valueStarts   []*byte
	nameLengths, valueLengths []uintptr
}

func packParams(params []Param) *packedParams {
	p := &packedParams{}
	for _, param := range params {
		// A trailing NUL gives an empty value an address, which the library wants.
		p.nameStarts = append(p.nameStarts, &append([]byte(param.Name), 0)[0])
		p.valueStarts = append(p.valueStarts, &append([]byte(param.Value), 0)[0])
		p.nameLengths = append(p.nameLengths, uintptr(len(param.Name)))
		p.valueLengths = append(p.valueLengths, uintptr(len(param.Value)))
	}
	return p
}

func (p *packedParams) names() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p.nameStarts)) }
func (p *packedParams) values() unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(p.valueStarts))
}
func (p *packedParams) nameLens() unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(p.nameLengths))
}
func (p *packedParams) valueLens() unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(p.valueLengths))
}

// pointer returns the address of a string's bytes; the caller keeps it alive.
func pointer(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

// address turns an address inside the library into a pointer. The memory is not
// Go's, so the collector neither moves nor frees it; the detour over a variable
// says so to vet.
func address(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// cString copies a NUL-terminated string out of the library; a null address is
// the empty string.
func cString(a uintptr) string {
	if a == 0 {
		return ""
	}
	start := (*byte)(address(a))
	size := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(start), size)) != 0 {
		size++
	}
	return string(unsafe.Slice(start, size))
}
