package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// formatCSV is an output format of those commands alone that have the
// annotation alsoCSV.
const (
	formatCSV = "csv"
	alsoCSV   = "landfall.csv"
)

// export writes rows as CSV as they come: there may be many.
func export[T any](a *app, l listing[T]) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	more := false
	if err := writeCSV(a.streams.Out, atMost(l.ask(client), l.limit, &more)); err != nil {
		return err
	}
	a.tellMore(more, l.limit)
	return nil
}

// writeCSV writes rows of a struct type as RFC 4180 has it, under their names in
// JSON. It writes as they come; after an error there are whole rows, or nothing.
func writeCSV[T any](to io.Writer, rows iter.Seq2[T, error]) error {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	names, fields := columns(reflect.TypeFor[T]())
	if err := w.Write(names); err != nil {
		return unwritten(err)
	}
	n := 0
	for row, err := range rows {
		if err != nil {
			if n > 0 {
				w.Flush()
			}
			return fromHub(err)
		}
		n++
		cells, value := make([]string, len(fields)), reflect.ValueOf(row)
		for i, f := range fields {
			cells[i] = cell(value.FieldByIndex(f))
		}
		if err := w.Write(cells); err != nil {
			return unwritten(err)
		}
	}
	w.Flush()
	return unwritten(w.Error())
}

// columns are the JSON names of a struct's fields, those of embedded structs in
// their place, and where the fields are.
func columns(t reflect.Type) (names []string, fields [][]int) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names, fields = append(names, name), append(fields, f.Index)
	}
	return names, fields
}

// cell writes one value: times in UTC and the zero time as nothing, texts so
// that no spreadsheet takes them for a formula, and no terminal for a command.
func cell(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	if v.Kind() != reflect.String {
		return fmt.Sprint(v.Interface())
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, v.String())
	if s != "" && strings.ContainsRune("=+-@\t", rune(s[0])) {
		return "'" + s
	}
	return s
}
