// Package store is the only code that speaks ClickHouse: it writes what changed
// and answers the hub's questions, a file per family of statements. The same
// statements run on the embedded engine, a server and a cluster.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	tables "github.com/landfall-hub/landfall/schema/clickhouse"
)

// Options configure a Store.
type Options struct {
	// URL is http(s)://user:password@host:port/database or clickhouse://… for
	// the native protocol. Without a database it is "landfall".
	URL string
	// DialContext connects to the server; nil is the ordinary way.
	DialContext func(ctx context.Context, address string) (net.Conn, error)
	// Cluster names a ClickHouse cluster, or is empty for one server.
	Cluster string
	// HistoryDays is how long history is kept. Default 400.
	HistoryDays int
	// FsyncAfterInsert has ClickHouse write each insert through to the disk
	// before it answers, so that what is acknowledged survives a loss of power.
	FsyncAfterInsert bool
	// Log is required.
	Log *slog.Logger
	// Registerer receives the metrics; nil registers none.
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	if o.Log == nil {
		return errors.New("a logger is needed")
	}
	if o.HistoryDays == 0 {
		o.HistoryDays = 400
	}
	if o.HistoryDays < 1 {
		return fmt.Errorf("history of %d days: at least one is kept", o.HistoryDays)
	}
	return nil
}

// Store is a pool of connections to one ClickHouse. Its methods may be called
// at any time from any goroutine; none is called before Migrate succeeded.
type Store struct {
	opts    Options
	conn    driver.Conn
	target  tables.Target
	metrics *metrics
	// columns are each table's, in order, as inserts name them.
	columns map[string][]clickhouse.ColumnNameAndType
}

// maxQuerySize bounds a statement's text, in bytes: it may hold the names of all
// clusters of a large fleet twice.
const maxQuerySize = 64 << 20

// DefaultDatabase is used where the URL names none.
const DefaultDatabase = "landfall"

// ErrURL says that a ClickHouse URL cannot be read. It never holds the password.
var ErrURL = errors.New("not a ClickHouse URL")

// Open prepares a store. It connects when it is first used.
func Open(opts Options) (*Store, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("configuring the store: %w", err)
	}
	ch, err := parse(opts.URL)
	if err != nil {
		return nil, err
	}
	database := ch.Auth.Database
	ch.DialContext = opts.DialContext
	ch.Auth.Database = "default" // until Migrate made ours; every statement names its database
	ch.MaxOpenConns, ch.MaxIdleConns = 16, 16
	ch.ConnMaxLifetime = time.Hour
	if ch.Settings == nil {
		ch.Settings = clickhouse.Settings{}
	}
	ch.Settings["max_query_size"] = maxQuerySize
	ch.DialTimeout = 10 * time.Second
	ch.ClientInfo.Products = append(ch.ClientInfo.Products, struct{ Name, Version string }{"landfall", "1"})
	conn, err := clickhouse.Open(ch)
	if err != nil {
		return nil, fmt.Errorf("opening ClickHouse: %w", err)
	}
	return &Store{
		opts: opts, conn: conn, metrics: newMetrics(opts.Registerer),
		target: tables.Target{Database: database, Cluster: opts.Cluster, HistoryDays: opts.HistoryDays},
	}, nil
}

// CheckURL says whether Open would take the URL.
func CheckURL(raw string) error {
	_, err := parse(raw)
	return err
}

func parse(raw string) (*clickhouse.Options, error) {
	scheme, _, ok := strings.Cut(raw, "://")
	switch scheme {
	case "http", "https", "clickhouse", "tcp", "native":
	default:
		ok = false
	}
	if !ok {
		return nil, fmt.Errorf("%w: write http(s)://user:password@host:8123/database or clickhouse://user:password@host:9000/database", ErrURL)
	}
	ch, err := clickhouse.ParseDSN(secured(scheme, raw))
	if err != nil {
		return nil, fmt.Errorf("%w: a part of it cannot be read; write %s://user:password@host:port/database", ErrURL, scheme)
	}
	if ch.Auth.Database == "" || ch.Auth.Database == "default" {
		ch.Auth.Database = DefaultDatabase
	}
	if strings.Trim(strings.ToLower(ch.Auth.Database), "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		// Not shown: behind a password with a slash stands a part of it.
		return nil, fmt.Errorf("%w: the database's name has letters, digits and _; write %%2F for a / in a password", ErrURL)
	}
	return ch, nil
}

// secured says the "secure" that the driver wants of an https URL.
func secured(scheme, raw string) string {
	address, query, _ := strings.Cut(raw, "?")
	if scheme != "https" || strings.Contains("&"+query, "&secure=") {
		return raw
	}
	return address + "?" + strings.TrimPrefix(query+"&secure=true", "&")
}

// Close closes the connections.
func (s *Store) Close() error { return s.conn.Close() }

// Ping reports whether ClickHouse answers a question now.
func (s *Store) Ping(ctx context.Context) error {
	var one uint8
	if err := s.conn.QueryRow(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("asking ClickHouse: %w", err)
	}
	return nil
}

// IsRejected reports whether ClickHouse took a statement in and refused it, so
// that trying the same again is no use; everything else may pass.
func IsRejected(err error) bool {
	exception, ok := errors.AsType[*clickhouse.Exception](err)
	if !ok {
		return false
	}
	switch exception.Code {
	case 159, 160, 202, 210, 241, 242, 243, 252, 319, 394, 999: // time, load, network, memory, space, read-only, parts, quorum, cancelled, keeper
		return false
	}
	return true
}

// sql writes the database's name for {db}. ClickHouse's own parameters hold a
// colon, {x:String}, and stay.
func (s *Store) sql(query string) string {
	return strings.ReplaceAll(query, "{db}", s.target.Database)
}

// query runs a SELECT and calls scan for every row.
func (s *Store) query(ctx context.Context, family, query string, scan func(driver.Rows) error, args ...any) error {
	done := s.metrics.time(family)
	defer done()
	rows, err := s.conn.Query(ctx, s.sql(query), args...)
	if err != nil {
		return fmt.Errorf("querying %s: %w", family, err)
	}
	defer rows.Close() // rows.Err says what went wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("reading %s: %w", family, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", family, err)
	}
	return nil
}

// exec runs a statement that answers nothing.
func (s *Store) exec(ctx context.Context, what, statement string, args ...any) error {
	if err := s.conn.Exec(ctx, s.sql(statement), args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// named gives a statement's {name:Type} its value.
func named(name string, value any) driver.NamedValue { return clickhouse.Named(name, value) }

// scanInto reads a row into the destinations.
func scanInto(destinations ...any) func(driver.Rows) error {
	return func(r driver.Rows) error { return r.Scan(destinations...) }
}
