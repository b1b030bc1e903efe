// Package chdb serves ClickHouse's HTTP interface from libchdb, ClickHouse as
// a shared library.
//
// The library is bound at run time, without cgo and only when it is first
// needed, so a program that never opens a database runs without it. Package
// users open one [Database] on one folder and mount [NewHandler] on a listener;
// any ClickHouse client that speaks HTTP can then talk to it.
//
// The library keeps one data folder per process, and it brings its own threads
// and allocator. That is why Landfall runs it in a process of its own,
// landfall-engine, and nothing else imports this package.
package chdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// LibraryEnv names the environment variable that holds the path of libchdb.so.
const LibraryEnv = "LANDFALL_CHDB_LIB"

// libraryName is what `npm` packages and `make build` call the library on every
// platform, macOS included.
const libraryName = "libchdb.so"

// ErrNoLibrary says that libchdb.so is missing or cannot be loaded.
var ErrNoLibrary = errors.New("libchdb is not available")

// api holds the entry points of the library that this package calls. Sizes are
// size_t, handles are opaque addresses that belong to the library.
type api struct {
	setSignalHandlers func(enabled int32)
	version           func() string

	connect   func(argc int32, argv unsafe.Pointer) uintptr
	closeConn func(conn uintptr)

	query func(conn uintptr, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr,
		names, nameLens, values, valueLens unsafe.Pointer, count uintptr) uintptr
	streamQuery func(conn uintptr, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr,
		names, nameLens, values, valueLens unsafe.Pointer, count uintptr) uintptr
	streamFetch  func(conn, stream uintptr) uintptr
	streamCancel func(conn, stream uintptr)

	insert func(conn uintptr, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr,
		names, nameLens, values, valueLens unsafe.Pointer, count uintptr) uintptr
	insertAppend  func(stream uintptr, data unsafe.Pointer, size uintptr) int32
	insertDone    func(stream uintptr) uintptr
	insertCancel  func(stream uintptr)
	insertError   func(stream uintptr) uintptr
	insertDestroy func(stream uintptr)

	resultBuffer      func(result uintptr) uintptr
	resultLength      func(result uintptr) uintptr
	resultError       func(result uintptr) uintptr
	resultRowsWritten func(result uintptr) uint64
	resultDestroy     func(result uintptr)
}

var library struct {
	once sync.Once
	api  *api
	err  error
}

// load binds the library on its first call; later calls return the same answer,
// because a process has one.
func load(path string) (*api, error) {
	library.once.Do(func() { library.api, library.err = bind(path) })
	return library.api, library.err
}

func bind(path string) (*api, error) {
	path, err := findLibrary(path)
	if err != nil {
		return nil, err
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: loading %s: %w; run `make build` to fetch it again", ErrNoLibrary, path, err)
	}

	lib := &api{}
	symbols := map[string]any{
		"chdb_set_signal_handlers_enabled": &lib.setSignalHandlers,
		"chdb_version":                     &lib.version,
		"chdb_connect":                     &lib.connect,
		"chdb_close_conn":                  &lib.closeConn,
		"chdb_query_with_params_n":         &lib.query,
		"chdb_stream_query_with_params_n":  &lib.streamQuery,
		"chdb_stream_fetch_result":         &lib.streamFetch,
		"chdb_stream_cancel_query":         &lib.streamCancel,
		"chdb_stream_insert_with_params_n": &lib.insert,
		"chdb_stream_append":               &lib.insertAppend,
		"chdb_stream_done":                 &lib.insertDone,
		"chdb_stream_cancel_insert":        &lib.insertCancel,
		"chdb_stream_insert_error":         &lib.insertError,
		"chdb_destroy_insert_stream":       &lib.insertDestroy,
		"chdb_result_buffer":               &lib.resultBuffer,
		"chdb_result_length":               &lib.resultLength,
		"chdb_result_error":                &lib.resultError,
		"chdb_result_rows_written":         &lib.resultRowsWritten,
		"chdb_destroy_query_result":        &lib.resultDestroy,
	}
	for name, target := range symbols {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has no %s, it is not the version Landfall is built for; run `make build`",
				ErrNoLibrary, path, name)
		}
		purego.RegisterFunc(target, address)
	}
	// The library's handlers would take SIGSEGV and SIGURG away from the Go
	// runtime, which needs both.
	lib.setSignalHandlers(0)
	return lib, nil
}

// findLibrary returns the path of libchdb.so: the one that was named, or the one
// beside the executable.
func findLibrary(path string) (string, error) {
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: %s=%s: %w", ErrNoLibrary, LibraryEnv, path, err)
		}
		return path, nil
	}
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w: finding the folder of this program: %w", ErrNoLibrary, err)
	}
	path = filepath.Join(filepath.Dir(executable), libraryName)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: no file %s; run `make build`, which fetches it, or point %s at it",
			ErrNoLibrary, path, LibraryEnv)
	}
	return path, nil
}
