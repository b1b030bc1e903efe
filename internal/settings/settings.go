// Package settings reads what a service is told: a YAML file, the environment
// and flags, each overriding the one before it. Its errors name the place.
package settings

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Settings describe a program's settings, which are a T.
type Settings[T any] struct {
	// Default returns what holds where nothing is said.
	Default func() T
	// Flags declares the flags, each with the field it fills. --config is there
	// already. Each is also a variable: --data-dir is LANDFALL_DATA_DIR.
	Flags func(*T, *flag.FlagSet)
	// Secrets are variables without a flag: everybody on a machine can read a
	// command line.
	Secrets map[string]func(*T) *string
	// Keys are the keys of the file that flags fill where the names differ.
	Keys map[string]string
	// Validate says what is wrong. The place is added to a KeyError.
	Validate func(*T) error
}

// A KeyError is about the value of one key, as the file would write it:
// "hub.url", "memberships[0].type". Its text follows the key: "must not be
// empty".
type KeyError struct {
	Key  string
	Text string
}

func (e *KeyError) Error() string { return e.Key + " " + e.Text }

// Badly is the KeyError with a formatted text.
func Badly(key, format string, args ...any) error {
	return &KeyError{Key: key, Text: fmt.Sprintf(format, args...)}
}

// Load reads the settings for the command that name names. The error wraps
// flag.ErrHelp when help was asked for; it names file and line for a bad file,
// and the flag or variable that a bad value came from.
func (s Settings[T]) Load(name string, args []string, env func(string) string) (T, error) {
	config, path := s.Default(), ""
	newSet := func() *flag.FlagSet {
		set := flag.NewFlagSet(name, flag.ContinueOnError)
		set.SetOutput(io.Discard)
		set.StringVar(&path, "config", path, "settings file (YAML)")
		s.Flags(&config, set)
		return set
	}
	// Once to find the file, then again on top of what it says.
	given, err := s.apply(newSet(), &config, args, env)
	if err != nil {
		return config, err
	}
	var text []byte
	if path != "" {
		config = s.Default()
		if text, err = readFile(path, &config); err != nil {
			return config, err
		}
		if given, err = s.apply(newSet(), &config, args, env); err != nil {
			return config, err
		}
	}
	return config, place(s.Validate(&config), given, path, text)
}

// apply reads flags, then the environment for those that were not given. It
// returns where the value of each key came from.
func (s Settings[T]) apply(set *flag.FlagSet, config *T, args []string, env func(string) string) (map[string]string, error) {
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag; see --help", set.Arg(0))
	}
	given, from := map[string]bool{}, map[string]string{}
	key := func(flag string) string {
		if k, ok := s.Keys[flag]; ok {
			return k
		}
		return strings.ReplaceAll(flag, "-", "_")
	}
	set.Visit(func(f *flag.Flag) { given[f.Name], from[key(f.Name)] = true, "--"+f.Name })
	var errs []error
	set.VisitAll(func(f *flag.Flag) {
		name := "LANDFALL_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := env(name); value != "" && !given[f.Name] {
			from[key(f.Name)] = name
			if err := set.Set(f.Name, value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	for name, field := range s.Secrets {
		if value := env(name); value != "" {
			*field(config) = value
		}
	}
	return from, errors.Join(errs...)
}

func readFile[T any](path string, into *T) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", path, explain[T](text, err))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it holds more than one document", path)
	}
	return text, nil
}

// explain words the decoder's complaints for people: each begins with "line N:".
func explain[T any](text []byte, err error) string {
	typed, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		complaint := strings.TrimPrefix(err.Error(), "yaml: ")
		if line := culprit[T](text, err); line > 0 {
			complaint = fmt.Sprintf("line %d: %s", line, complaint)
		}
		return complaint
	}
	lines := make([]string, len(typed.Errors))
	for i, text := range typed.Errors {
		if before, after, ok := strings.Cut(text, ": field "); ok {
			key, _, _ := strings.Cut(after, " not found in type ")
			text = fmt.Sprintf("%s: unknown key %q", before, key)
		}
		lines[i] = text
	}
	return strings.Join(lines, "; ")
}

// culprit returns the line of the value that a type of its own, such as a
// duration, refused: the decoder does not say it. 0 where it is not found.
func culprit[T any](text []byte, err error) int {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return 0 // it is no YAML, and the complaint has its line
	}
	line := 0
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 {
				continue // a key
			}
			if child.Kind != yaml.ScalarNode {
				walk(child)
				continue
			}
			was := *child
			*child = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
			if again := doc.Decode(new(T)); line == 0 && (again == nil || again.Error() != err.Error()) {
				line = was.Line
			}
			*child = was
		}
	}
	walk(&doc)
	return line
}

// place says where the value that err complains of came from.
func place(err error, given map[string]string, path string, text []byte) error {
	if err == nil {
		return nil
	}
	if bad, ok := errors.AsType[*KeyError](err); ok {
		if from := given[bad.Key]; from != "" {
			return fmt.Errorf("%s: %w", from, err)
		}
		if line := lineOf(text, bad.Key); path != "" && line > 0 {
			return fmt.Errorf("%s: line %d: %w", path, line, err)
		}
	}
	if path != "" {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// lineOf returns the line of a key such as "a.b[2].c", or of the nearest key
// above it that is there; 0 where there is none.
func lineOf(text []byte, key string) int {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return 0
	}
	at, line := doc.Content[0], 0
	for name := range strings.SplitSeq(strings.NewReplacer("[", ".[", "]", "").Replace(key), ".") {
		next := below(at, name)
		if next == nil {
			return line
		}
		at, line = next, next.Line
	}
	return line
}

func below(n *yaml.Node, name string) *yaml.Node {
	index, isIndex := strings.CutPrefix(name, "[")
	for i := 0; i < len(n.Content); i++ {
		switch {
		case isIndex && n.Kind == yaml.SequenceNode && fmt.Sprint(i) == index:
			return n.Content[i]
		case !isIndex && n.Kind == yaml.MappingNode && i%2 == 0 && n.Content[i].Value == name && i+1 < len(n.Content):
			return n.Content[i+1]
		}
	}
	return nil
}
