package api

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A client that sends all of a long body before it reads must get the refusal,
// not a broken pipe.
func TestARefusalReachesWhoSendsFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		head   string
		want   int
	}{
		"too long": {"17 MiB by Content-Length", "Content-Type: application/json\r\n", http.StatusRequestEntityTooLarge},
		"not JSON": {"refused for its type, unread", "Content-Type: text/plain\r\n", http.StatusUnsupportedMediaType},
	}
	f := bareFixture(t)
	srv := httptest.NewServer(f.api.Handler())
	defer srv.Close()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			body := bytes.Repeat([]byte("x"), 17<<20)
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: %d\r\n\r\n", reports, tc.head, len(body))
			if _, err := conn.Write(append([]byte(head), body...)); err != nil {
				t.Fatalf("%s: the connection was closed on the sender: %v", tc.reason, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tc.want || !strings.Contains(resp.Header.Get("Content-Type"), "problem+json") {
				t.Errorf("%s: %s %s, want %d and a problem", tc.reason, resp.Status, resp.Header.Get("Content-Type"), tc.want)
			}
		})
	}
}
