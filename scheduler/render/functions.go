package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/sprig/v3"
	"go.yaml.in/yaml/v3"
)

// notOurs are functions of sprig's hermetic set that are not hermetic after all,
// or have no place where what they return is committed to a repository.
var notOurs = []string{
	// The clock, the machine's time zone.
	"ago", "toDate", "mustToDate", "must_date_modify", "mustDateModify", "unixEpoch", "durationRound",
	// Chance.
	"randInt", "shuffle",
	// Keys and passwords: of chance, and secrets do not belong into Git.
	"bcrypt", "htpasswd", "derivePassword", "genPrivateKey", "buildCustomCert", "genCA", "genCAWithKey",
	"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"encryptAES", "decryptAES",
}

// builtins are the functions of text/template that are taken as they are.
var builtins = []string{"and", "or", "not", "index", "len", "call", "eq", "ne", "lt", "le", "gt", "ge"}

// library is every function that templates have beside builtins, unmetered.
var library = newLibrary()

func newLibrary() map[string]reflect.Value {
	all := map[string]any(sprig.HermeticTxtFuncMap())
	for _, name := range notOurs {
		delete(all, name)
	}
	maps.Copy(all, map[string]any{
		// Kalypso's own.
		"toYaml":    toYAML,
		"toJson":    toJSON,
		"stringify": stringify,
		"hash":      hash,
		"unquote":   unquote,
		// Sprig's, in the same order each time.
		"keys":   keys,
		"values": values,
		// Sprig's, the same on every system.
		"osBase": path.Base, "osClean": path.Clean, "osDir": path.Dir, "osExt": path.Ext, "osIsAbs": path.IsAbs,
		// Sprig's, which would go round for ever.
		"until": until, "untilStep": untilStep, "seq": seq,
		// text/template's, to be metered.
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
	})
	l := make(map[string]reflect.Value, len(all))
	for name, f := range all {
		l[name] = reflect.ValueOf(f)
	}
	return l
}

// toYAML writes a value as YAML, keys sorted, without a line break at its end.
func toYAML(v any) (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	if err := e.Close(); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// toJSON writes a value as JSON, keys sorted, with <, > and & as they are.
func toJSON(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// stringify writes a map as YAML in which every value is a string, maps and
// lists as YAML texts of their own: what the data of a ConfigMap must be. Of
// anything else it returns the text.
func stringify(v any) (string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return text(v)
	}
	if len(m) == 0 {
		return "{}", nil
	}
	flat := make(map[string]string, len(m))
	for key, value := range m {
		s, err := text(value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
		flat[key] = s
	}
	return toYAML(flat)
}

// text is a value as a string: a string itself, anything with parts as YAML.
func text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case map[string]any, []any, map[string]string, []string:
		s, err := toYAML(v)
		return s + "\n", err
	}
	return fmt.Sprint(v), nil
}

// hash returns a number of 64 bits, in decimal, that is equal for equal values.
func hash(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 10), nil
}

// unquote takes quotes and white space from both ends of a text.
func unquote(v any) (string, error) {
	s, err := text(v)
	return strings.Trim(s, "\"' \t\r\n"), err
}

func keys(all ...map[string]any) []string {
	var names []string
	for _, m := range all {
		names = append(names, slices.Sorted(maps.Keys(m))...)
	}
	return names
}

func values(m map[string]any) []any {
	all := make([]any, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[name])
	}
	return all
}

// mostTurns is how many numbers until, untilStep and seq count at most.
const mostTurns = 10_000

func until(n int) ([]int, error) {
	if n < 0 {
		return untilStep(0, n, -1)
	}
	return untilStep(0, n, 1)
}

// untilStep counts from start, in steps, as long as stop is not reached.
func untilStep(start, stop, step int) ([]int, error) {
	numbers := []int{}
	if step == 0 || (stop < start) != (step < 0) {
		return numbers, nil
	}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(numbers) == mostTurns {
			return nil, overLimit("it counts more than %d numbers", mostTurns)
		}
		numbers = append(numbers, i)
		if step > 0 && i > stop-step || step < 0 && i < stop-step {
			break // adding the step once more would be past the end, or past all numbers
		}
	}
	return numbers, nil
}

// seq counts like the Unix program, the last number included: seq LAST, seq
// FIRST LAST, seq FIRST STEP LAST.
func seq(p ...int) (string, error) {
	var first, step, last int
	switch len(p) {
	case 1:
		first, last = 1, p[0]
	case 2:
		first, last = p[0], p[1]
	case 3:
		first, step, last = p[0], p[1], p[2]
	default:
		return "", nil
	}
	end := last + 1
	if last < first {
		end = last - 1
	}
	if len(p) < 3 {
		step = 1
		if last < first {
			step = -1
		}
	}
	if end < last != (last < first) {
		return "", errors.New("seq: its last number is too large")
	}
	numbers, err := untilStep(first, end, step)
	if err != nil {
		return "", err
	}
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " "), nil
}
