package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/landfall-hub/landfall/schema"
)

// unmarshal reads one JSON value strictly: unknown and repeated members, wrong
// types, bytes that are not UTF-8 and anything after the value are errors,
// unless options allow them. The error is an *schema.Invalid that says where.
func unmarshal(body []byte, v any, options ...json.Options) error {
	err := json.Unmarshal(body, v, append([]json.Options{json.RejectUnknownMembers(true)}, options...)...)
	if err == nil {
		return nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return &schema.Invalid{Code: schema.CodeInvalidJSON, Detail: "the body is empty; write a JSON object"}
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return &schema.Invalid{
			Code:    schema.CodeInvalidJSON,
			Pointer: string(syntactic.JSONPointer),
			Detail:  syntaxDetail(syntactic) + place(body, syntactic.ByteOffset),
		}
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return fmt.Errorf("reading a body into a %T: %w", v, err)
	}
	in := &schema.Invalid{
		Code:    schema.CodeInvalidField,
		Pointer: string(semantic.JSONPointer),
		Detail:  typeDetail(semantic) + place(body, semantic.ByteOffset),
	}
	if errors.Is(err, json.ErrUnknownName) {
		in.Code = schema.CodeUnknownField
		in.Detail = fmt.Sprintf("nobody knows the member %q", shorten(semantic.JSONPointer.LastToken(), 100)) + place(body, semantic.ByteOffset)
	}
	return in
}

func syntaxDetail(e *jsontext.SyntacticError) string {
	switch {
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		return fmt.Sprintf("the member %q stands there twice", shorten(e.JSONPointer.LastToken(), 100))
	case errors.Is(e.Err, io.ErrUnexpectedEOF), errors.Is(e.Err, io.EOF):
		return "the body ends in the middle of a value"
	}
	return strings.TrimPrefix(e.Err.Error(), "jsontext: ")
}

// typeDetail says what stands there and what should.
func typeDetail(e *json.SemanticError) string {
	if e.GoType == nil {
		return "its value is not allowed"
	}
	wanted := "something else"
	switch e.GoType {
	case reflect.TypeFor[time.Time]():
		return "a time is written like \"2026-11-20T09:00:00Z\""
	case reflect.TypeFor[schema.Duration]():
		return "a duration is written like \"30s\" or \"10m\""
	}
	switch e.GoType.Kind() {
	case reflect.String:
		wanted = "a text"
	case reflect.Bool:
		wanted = "true or false"
	case reflect.Uint64:
		wanted = "a whole number from 0 to 2⁶⁴-1"
	case reflect.Int:
		wanted = "a whole number"
	case reflect.Slice:
		wanted = "a list"
	case reflect.Struct, reflect.Map:
		wanted = "an object"
	}
	return "here stands " + found(e.JSONKind) + " where " + wanted + " belongs"
}

func found(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '{', '}':
		return "an object"
	case '[', ']':
		return "a list"
	}
	return "a value"
}

// place says where in the body an offset is.
func place(body []byte, offset int64) string {
	before := body[:min(max(offset, 0), int64(len(body)))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf(" (line %d, column %d, byte %d)", line, column, offset)
}
