package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
)

// compressFrom is the size in bytes from which answers are compressed.
const compressFrom = 1024

// inUTC writes every time in UTC, whatever zone a part of the hub left it in.
var inUTC = json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Format(time.RFC3339Nano)))
}))

// marshal writes an answer: no null lists, sorted maps, times in UTC.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), inUTC)
}

// list is the shape of every list. NextCursor is empty on the last page.
type list[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// answer writes a value as JSON.
func (a *API) answer(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("writing a %T as JSON: %w", v, err)
	}
	a.write(w, r, status, "application/json", body)
	return nil
}

// write sends a whole body, compressed where that pays and the client reads it.
// An error of the connection is the client's to notice.
func (a *API) write(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= compressFrom {
		switch encoding := acceptedEncoding(r.Header.Values("Accept-Encoding")); encoding {
		case "zstd":
			body = a.zstd.EncodeAll(body, make([]byte, 0, len(body)/4))
			h.Set("Content-Encoding", encoding)
		case "gzip":
			body = gzipped(body)
			h.Set("Content-Encoding", encoding)
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	extendWriting(w, writeTimeout)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// acceptedEncoding returns zstd, gzip or "", the one that the client weighs
// most, zstd on a tie.
func acceptedEncoding(values []string) string {
	best, weight := "", 0.0
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			if name != "gzip" && name != "zstd" {
				continue
			}
			q := 1.0
			if text, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q="); ok {
				var err error
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			if q > weight || q == weight && name == "zstd" && q > 0 {
				best, weight = name, q
			}
		}
	}
	return best
}

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // the level is a constant
		panic(err)
	}
	return w
}}

func gzipped(body []byte) []byte {
	var buf bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&buf)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}
