package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/landfall-hub/landfall/internal/settings"
)

type config struct{ Name string }

func TestCommands(t *testing.T) {
	served := ""
	service := Service[config]{
		Name: "landfall-test", Run: "serve", Usage: "landfall-test serve\n",
		Settings: settings.Settings[config]{
			Default: func() config { return config{Name: "nobody"} },
			Flags:   func(c *config, set *flag.FlagSet) { set.StringVar(&c.Name, "name", c.Name, "") },
			Validate: func(c *config) error {
				if c.Name == "" {
					return errors.New("name must not be empty")
				}
				return nil
			},
		},
		Serve: func(_ context.Context, p Program, c config) error {
			served = c.Name + " " + p.Version
			if c.Name == "broken" {
				return errors.New("it broke")
			}
			return nil
		},
		Check: func(_ Program, c config) (string, error) {
			if c.Name == "gone" {
				return "", errors.New("it is gone")
			}
			return "good: " + c.Name, nil
		},
	}
	cases := map[string]struct {
		reason         string
		args           []string
		env            string
		code           int
		stdout, stderr string
		served         string
	}{
		"Nothing":     {"No command is bad usage.", nil, "", 2, "", "landfall-test serve\n", ""},
		"Unknown":     {"So is one that nobody knows.", []string{"run"}, "", 2, "", "landfall-test serve\n", ""},
		"Half":        {"Or half a one.", []string{"config"}, "", 2, "", "landfall-test serve\n", ""},
		"ConfigOther": {"Or its other half.", []string{"config", "show"}, "", 2, "", "landfall-test serve\n", ""},
		"Help":        {"Help is an answer.", []string{"help"}, "", 0, "landfall-test serve\n", "", ""},
		"ServeHelp":   {"Of a command, too.", []string{"serve", "--help"}, "", 0, "landfall-test serve\n", "", ""},
		"Version":     {"The version.", []string{"--version"}, "", 0, "1.2.3\n", "", ""},
		"Serve":       {"It runs.", []string{"serve", "--name", "me"}, "", 0, "", "", "me 1.2.3"},
		"Environment": {"Settings come from there, too.", []string{"serve"}, "you", 0, "", "", "you 1.2.3"},
		"Broken":      {"What breaks fails.", []string{"serve", "--name", "broken"}, "", 1, "", "landfall-test: it broke\n", "broken 1.2.3"},
		"ServeBad":    {"Bad settings are bad usage, and nothing runs.", []string{"serve", "--name", ""}, "", 2, "", "landfall-test: name must not be empty\n", ""},
		"Check":       {"Settings are looked at.", []string{"config", "check"}, "", 0, "good: nobody\n", "", ""},
		"CheckGone":   {"And what they name.", []string{"config", "check", "--name", "gone"}, "", 2, "", "landfall-test: it is gone\n", ""},
		"CheckFlag":   {"A bad flag is told once.", []string{"config", "check", "--bad"}, "", 2, "", "landfall-test: flag provided but not defined: -bad\n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			served = ""
			var stdout, stderr bytes.Buffer
			env := func(name string) string {
				if name == "LANDFALL_NAME" {
					return tc.env
				}
				return ""
			}
			code := service.Main(t.Context(), Program{Args: tc.args, Env: env, Stdout: &stdout, Stderr: &stderr, Version: "1.2.3"})
			if code != tc.code || stdout.String() != tc.stdout || !strings.HasPrefix(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.Len() > 0 || served != tc.served {
				t.Errorf("%s %d, %q, %q, served %q", tc.reason, code, stdout.String(), stderr.String(), served)
			}
		})
	}
}
