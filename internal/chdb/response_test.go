package chdb

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"github.com/google/go-cmp/cmp"
)

// answer runs a handler's answer through a real connection.
func answer(t *testing.T, write func(o *response)) (*http.Response, []byte, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		o := newResponse(w, statusOf)
		o.describe(&request{output: "TabSeparated"})
		write(o)
	}))
	t.Cleanup(server.Close)
	got, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	return got, body, errors.Join(err, got.Body.Close())
}

func TestResponseIsHeldBack(t *testing.T) {
	got, body, err := answer(t, func(o *response) {
		if err := o.write(make([]byte, holdBack)); err != nil {
			t.Error(err)
		}
		o.fail(failure(codeBadArguments, "late"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != http.StatusInternalServerError || got.Header.Get("X-ClickHouse-Exception-Code") != "36" {
		t.Errorf("status %d, code %s", got.StatusCode, got.Header.Get("X-ClickHouse-Exception-Code"))
	}
	if want := "Code: 36. DB::Exception: late (BAD_ARGUMENTS)\n"; string(body) != want {
		t.Errorf("got %q, want %q", body, want)
	}
}

func TestResponseBreaksOff(t *testing.T) {
	got, body, err := answer(t, func(o *response) {
		if err := o.write(make([]byte, holdBack+1)); err != nil {
			t.Error(err)
		}
		o.fail(failure(codeBadArguments, "too late"))
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("want a broken answer, got %v", err)
	}
	tag := got.Header.Get("X-ClickHouse-Exception-Tag")
	want := "\r\n__exception__\r\n" + tag + "\r\nCode: 36. DB::Exception: too late (BAD_ARGUMENTS)\n"
	if len(tag) != tagSize || !strings.Contains(string(body[len(body)-200:]), want) {
		t.Errorf("tag %q, the answer ends with %q", tag, body[len(body)-200:])
	}
}

func TestHelloIsReadAtRevisionZero(t *testing.T) {
	block := proto.Block{ServerContext: &column.ServerContext{}}
	reader := chproto.NewReader(bytes.NewReader(encodeHello("host", "26.7.1.1", "UTC")))
	if err := block.Decode(reader, proto.DBMS_TCP_PROTOCOL_VERSION); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for i, column := range block.Columns {
		got[block.ColumnsNames()[i]] = column.Row(0, false)
	}
	want := map[string]any{"displayName()": "host", "version()": "26.7.1.1", "revision()": uint32(0), "timezone()": "UTC"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("bytes are left over: %v", err)
	}
}

func TestExceptions(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   Exception
	}{
		"plain":  {"as the engine words it", "Code: 60. DB::Exception: x (UNKNOWN_TABLE)", Exception{60, "Code: 60. DB::Exception: x (UNKNOWN_TABLE)"}},
		"prefix": {"clients look for the code at the start", "Error: Code: 60. DB::Exception: x\n", Exception{60, "Code: 60. DB::Exception: x"}},
		"none":   {"a message without a code gets one", "it broke", Exception{1002, "Code: 1002. DB::Exception: it broke (UNKNOWN_EXCEPTION)"}},
		"huge":   {"a number that is no code", "Code: 99999999999999999999. x", Exception{1002, "Code: 1002. DB::Exception: Code: 99999999999999999999. x (UNKNOWN_EXCEPTION)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, *newException(tc.text)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
