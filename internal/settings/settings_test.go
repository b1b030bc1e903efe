package settings

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type config struct {
	Name  string `yaml:"name"`
	Token string `yaml:"token"`
	Deep  struct {
		List []struct {
			URL string `yaml:"url"`
		} `yaml:"list"`
		Size int        `yaml:"size"`
		Rate percentage `yaml:"rate"`
	} `yaml:"deep"`
}

// percentage is a type that reads its own text.
type percentage int

func (p *percentage) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%d%%", (*int)(p))
	if err != nil {
		return fmt.Errorf("a percentage is written like 5%%, not %q", text)
	}
	return nil
}

var program = Settings[config]{
	Default: func() config { return config{Name: "default"} },
	Flags: func(c *config, set *flag.FlagSet) {
		set.StringVar(&c.Name, "name", c.Name, "")
		set.IntVar(&c.Deep.Size, "size", c.Deep.Size, "")
	},
	Secrets: map[string]func(*config) *string{"LANDFALL_TOKEN": func(c *config) *string { return &c.Token }},
	Keys:    map[string]string{"size": "deep.size"},
	Validate: func(c *config) error {
		if c.Name == "bad" {
			return Badly("name", "must not be %s", c.Name)
		}
		if c.Deep.Size < 0 {
			return Badly("deep.size", "must not be negative")
		}
		for _, item := range c.Deep.List {
			if item.URL == "" {
				return Badly("deep.list[1].url", "must not be empty")
			}
		}
		if c.Name == "odd" {
			return errors.New("this is odd")
		}
		return nil
	},
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Flags override variables, which override the file.
func TestPrecedence(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		file   string
		env    map[string]string
		args   []string
		want   [2]string
	}{
		"defaults": {"nothing said", "{}", nil, nil, [2]string{"default", ""}},
		"file":     {"the file alone", "name: file\ntoken: a\n", nil, nil, [2]string{"file", "a"}},
		"env":      {"variables, with and without a flag", "name: file\ntoken: a\n", map[string]string{"LANDFALL_NAME": "env", "LANDFALL_TOKEN": "b"}, nil, [2]string{"env", "b"}},
		"flag":     {"a flag", "name: file\n", map[string]string{"LANDFALL_NAME": "env"}, []string{"--name=flag"}, [2]string{"flag", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := program.Load("test", append(c.args, "--config", write(t, c.file)), func(k string) string { return c.env[k] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, [2]string{got.Name, got.Token}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// Each complaint says where the value came from.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		file   string
		env    map[string]string
		args   []string
		want   string // FILE is the file
	}{
		"file":        {"file and line", "\n\nname: bad\n", nil, nil, "FILE: line 3: name must not be bad"},
		"list":        {"in a list too", "deep:\n  list:\n  - url: x\n  - url: ''\n", nil, nil, "FILE: line 4: deep.list[1].url must not be empty"},
		"left out":    {"the nearest key that is there", "deep:\n  list:\n  - url: x\n  - {}\n", nil, nil, "FILE: line 4: deep.list[1].url must not be empty"},
		"env":         {"the variable, not the line it overrides", "name: good\n", map[string]string{"LANDFALL_NAME": "bad"}, nil, "LANDFALL_NAME: name must not be bad"},
		"flag":        {"the flag, not the variable it overrides", "", map[string]string{"LANDFALL_SIZE": "4"}, []string{"--size=-1"}, "--size: deep.size must not be negative"},
		"unset":       {"a default that does not do has no line", "{}", nil, []string{"--name=odd"}, "FILE: this is odd"},
		"no file":     {"nor a file", "", nil, []string{"--name=odd"}, "this is odd"},
		"bad env":     {"a variable of another type", "", map[string]string{"LANDFALL_SIZE": "big"}, nil, "LANDFALL_SIZE: parse error"},
		"unknown key": {"an unknown key", "name: a\nnames: b\n", nil, nil, `FILE: line 2: unknown key "names"`},
		"own type":    {"a type that reads its own text", "name: a\ndeep:\n  size: 1\n  rate: much\n", nil, nil, `FILE: line 4: a percentage is written like 5%, not "much"`},
		"no YAML":     {"what is none has its line already", "name: a\ndeep: [\n", nil, nil, "FILE: line 2: did not find expected node content"},
		"two":         {"more than one document", "name: a\n---\nname: b\n", nil, nil, "FILE: it holds more than one document"},
		"argument":    {"what is no flag", "", nil, []string{"extra"}, `"extra" is no flag; see --help`},
	} {
		t.Run(name, func(t *testing.T) {
			path, args := "", c.args
			if c.file != "" {
				path = write(t, c.file)
				args = append(args, "--config", path)
			}
			if name == "argument" {
				args = c.args
			}
			_, err := program.Load("test", args, func(k string) string { return c.env[k] })
			if want := strings.ReplaceAll(c.want, "FILE", path); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s: %s", err, want, c.reason)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	if _, err := program.Load("test", []string{"-h"}, func(string) string { return "" }); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("the error is %v", err)
	}
}
