package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// list is the form of several things in JSON, as the API has it.
type list[T any] struct {
	Items []T `json:"items"`
}

// listOf returns the list of items, never with null.
func listOf[T any](items []T) list[T] {
	if items == nil {
		items = []T{}
	}
	return list[T]{Items: items}
}

// print writes v in the format asked for; table writes the one for people.
func (a *app) print(v any, table func(io.Writer) error) error {
	var out bytes.Buffer
	var err error
	switch a.global.output {
	case "json":
		err = writeJSON(&out, v)
	case "yaml":
		err = writeYAML(&out, v)
	default:
		err = table(&out)
	}
	if err == nil {
		_, err = a.streams.Out.Write(out.Bytes())
	}
	return unwritten(err)
}

// unwritten words that a result could not be written; nil stays nil.
func unwritten(err error) error {
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeYAML writes the JSON form of v as YAML: the same names, in order of the
// alphabet.
func writeYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(numbers(plain)); err != nil {
		return err
	}
	return e.Close()
}

// numbers turns JSON numbers into Go's, whole ones without rounding.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			v[k] = numbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = numbers(item)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	}
	return v
}

// age says how long ago t was, roughly; zero is never.
func age(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	switch d := now.Sub(t); {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s ago"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h ago"
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d ago"
	}
}
