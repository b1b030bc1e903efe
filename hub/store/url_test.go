package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func TestCheckURL(t *testing.T) {
	const secret = "s3cr3t"
	cases := map[string]struct {
		reason string
		url    string
		ok     bool
	}{
		"HTTP":             {"HTTP is spoken.", "http://u:" + secret + "@host:8123/landfall", true},
		"HTTPS":            {"HTTPS is spoken.", "https://u:" + secret + "@host:8443/db_2", true},
		"HTTPSSecure":      {"What is said is not said twice.", "https://u@host/db?secure=true", true},
		"HTTPSSetting":     {"Settings may follow.", "https://u@host/db?compress=lz4", true},
		"Native":           {"So is the native protocol.", "clickhouse://u:" + secret + "@host:9000/landfall?secure=true", true},
		"NoDatabase":       {"A database has a default.", "clickhouse://host:9000", true},
		"Empty":            {"Nothing is no URL.", "", false},
		"NoScheme":         {"A host is no URL.", "u:" + secret + "@host:9000", false},
		"OtherScheme":      {"Another database's URL is none.", "postgres://u:" + secret + "@host/db", false},
		"Slash":            {"A password with a slash must be encoded.", "http://u:" + secret + "/" + secret + "@host:8123/db", false},
		"DigitsAndSlash":   {"Nor does it show where the host seems to end.", "http://u:123/" + secret + "@host/db", false},
		"BadPercent":       {"A stray percent sign is an error.", "http://u:" + secret + "%zz@host:8123/db", false},
		"BadPort":          {"A port is a number.", "http://u:" + secret + "@host:x/db", false},
		"BadSetting":       {"A setting that cannot be read is an error.", "clickhouse://u:" + secret + "@host:9000/db?dial_timeout=" + secret, false},
		"PasswordInQuery":  {"A password may stand in the query.", "clickhouse://host:9000/db?username=u&password=" + secret, true},
		"DatabaseQuote":    {"A database's name goes into statements.", "http://u:" + secret + "@host:8123/a`b", false},
		"DatabaseSemi":     {"Whatever it holds.", "http://u:" + secret + "@host:8123/a;DROP", false},
		"DatabaseUnicode":  {"Letters are ASCII ones.", "http://u:" + secret + "@host:8123/dåta", false},
		"ControlCharacter": {"A line break is no part of a URL.", "http://u:" + secret + "@host\n:8123/db", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckURL(tc.url)
			if (err == nil) != tc.ok {
				t.Errorf("%s The error is %v", tc.reason, err)
			}
			if err != nil && !errors.Is(err, ErrURL) {
				t.Errorf("%v is no ErrURL", err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
}

// A server that cannot be reached, and one that answers nonsense, are reported
// without the password.
func TestErrorsHoldNoPassword(t *testing.T) {
	const secret = "s3cr3t"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))                                                                    // as below
			_, _ = io.WriteString(c, "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbad\n") // the client may be gone
			_ = c.Close()                                                                                        // as above
		}
	}()
	t.Cleanup(func() { <-served })
	t.Cleanup(func() { _ = listener.Close() }) // it ends the loop
	for _, scheme := range []string{"http", "clickhouse"} {
		s, err := Open(Options{URL: scheme + "://user:" + secret + "@" + listener.Addr().String() + "/db?dial_timeout=1s&read_timeout=1s", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		for what, err := range map[string]error{"ping": s.Ping(ctx), "migrate": s.Migrate(ctx)} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s of %s: %v", what, scheme, err)
			}
		}
		cancel()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOptions(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, o := range map[string]Options{
		"no logger":        {URL: "http://host:8123"},
		"negative history": {URL: "http://host:8123", Log: log, HistoryDays: -1},
		"no URL":           {Log: log},
	} {
		if s, err := Open(o); err == nil {
			t.Errorf("%s: opened %v", name, s)
		}
	}
}

func TestIsRejected(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Syntax":        {"A statement that cannot be read will not be next time.", &clickhouse.Exception{Code: 62}, true},
		"Wrapped":       {"However deep it is.", fmt.Errorf("inserting: %w", &clickhouse.Exception{Code: 60}), true},
		"Type":          {"Rows that do not fit will not.", &clickhouse.Exception{Code: 53}, true},
		"Access":        {"A user who may not will not.", &clickhouse.Exception{Code: 497}, true},
		"Timeout":       {"Time passes.", &clickhouse.Exception{Code: 159}, false},
		"TooMany":       {"Load passes.", &clickhouse.Exception{Code: 202}, false},
		"Network":       {"A shard comes back.", &clickhouse.Exception{Code: 210}, false},
		"Memory":        {"Memory is freed.", &clickhouse.Exception{Code: 241}, false},
		"ReadOnly":      {"A table becomes writable.", &clickhouse.Exception{Code: 242}, false},
		"Space":         {"Somebody makes room.", &clickhouse.Exception{Code: 243}, false},
		"Parts":         {"Parts are merged.", &clickhouse.Exception{Code: 252}, false},
		"Quorum":        {"Replicas come back.", &clickhouse.Exception{Code: 319}, false},
		"Cancelled":     {"Another try is not cancelled.", &clickhouse.Exception{Code: 394}, false},
		"Keeper":        {"Keeper comes back.", &clickhouse.Exception{Code: 999}, false},
		"NoException":   {"What never arrived was not refused.", io.ErrUnexpectedEOF, false},
		"Context":       {"Nor what was given up.", context.Canceled, false},
		"Nothing":       {"No error is no refusal.", nil, false},
		"ConnectFailed": {"Nor is a closed door.", &net.OpError{Op: "dial", Err: errors.New("refused")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsRejected(tc.err); got != tc.want {
				t.Errorf("%s IsRejected is %t", tc.reason, got)
			}
		})
	}
}
