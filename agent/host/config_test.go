package host

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/landfall-hub/landfall/schema"
)

func TestValidate(t *testing.T) {
	good := func() Config {
		return Config{StateDir: "/var/lib/landfall", Folders: []FolderConfig{
			{Name: "drone", Repo: "https://git.example/org/repo", Ref: "dev", Path: "drone", Apply: ApplyConfig{Shell: "make"}},
			{Name: "large", Repo: "/srv/git/repo", Apply: ApplyConfig{Argv: []string{"make", "large"}, Env: map[string]string{"A": "1"}, PassEnv: []string{"TZ"}}},
		}}
	}
	c := good()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Folders[0].Interval != 0 || c.withDefaults().Folders[0].Interval != DefaultInterval {
		t.Error("validating fills nothing in, withDefaults does")
	}
	cases := map[string]struct {
		change func(*Config)
		key    string
	}{
		"no state":          {func(c *Config) { c.StateDir = "" }, "state_dir"},
		"relative state":    {func(c *Config) { c.StateDir = "state" }, "state_dir"},
		"parallel":          {func(c *Config) { c.Parallel = 65 }, "parallel"},
		"no name":           {func(c *Config) { c.Folders[0].Name = "" }, "folders[0].name"},
		"a path as name":    {func(c *Config) { c.Folders[0].Name = "../x" }, "folders[0].name"},
		"hidden":            {func(c *Config) { c.Folders[0].Name = ".x" }, "folders[0].name"},
		"a slash in a name": {func(c *Config) { c.Folders[0].Name = "a/b" }, "folders[0].name"},
		"twice":             {func(c *Config) { c.Folders[1].Name = "drone" }, "folders[1].name"},
		"no repo":           {func(c *Config) { c.Folders[1].Repo = "" }, "folders[1].repo"},
		"bad repo":          {func(c *Config) { c.Folders[1].Repo = "oci://x/y" }, "folders[1].repo"},
		"ssh without keys":  {func(c *Config) { c.Folders[1].Repo = "git@git.example:org/repo" }, "folders[1].repo"},
		"bad ref":           {func(c *Config) { c.Folders[0].Ref = "a\nb" }, "folders[0].ref"},
		"a range":           {func(c *Config) { c.Folders[0].Ref = "semver:>=1" }, "folders[0].ref"},
		"path climbs":       {func(c *Config) { c.Folders[0].Path = "../x" }, "folders[0].path"},
		"too often":         {func(c *Config) { c.Folders[0].Interval = schema.Duration(time.Millisecond) }, "folders[0].interval"},
		"no command":        {func(c *Config) { c.Folders[0].Apply.Shell = "" }, "folders[0].apply"},
		"two commands":      {func(c *Config) { c.Folders[0].Apply.Argv = []string{"x"} }, "folders[0].apply"},
		"empty program":     {func(c *Config) { c.Folders[1].Apply.Argv[0] = "" }, "folders[1].apply.argv"},
		"no time":           {func(c *Config) { c.Folders[0].Apply.Timeout = -1 }, "folders[0].apply.timeout"},
		"dir climbs":        {func(c *Config) { c.Folders[0].Apply.Dir = "../x" }, "folders[0].apply.dir"},
		"NUL":               {func(c *Config) { c.Folders[0].Apply.Shell = "a\x00" }, "folders[0].apply"},
		"NUL in a variable": {func(c *Config) { c.Folders[1].Apply.Env["A"] = "\x00" }, "folders[1].apply.env"},
		"our variables":     {func(c *Config) { c.Folders[1].Apply.Env["LANDFALL_COMMIT"] = "x" }, "folders[1].apply.env"},
		"our token":         {func(c *Config) { c.Folders[1].Apply.PassEnv[0] = "LANDFALL_TOKEN" }, "folders[1].apply.pass_env[0]"},
		"no variable":       {func(c *Config) { c.Folders[1].Apply.PassEnv[0] = "A=B" }, "folders[1].apply.pass_env[0]"},
	}
	for name, tc := range cases {
		c := good()
		tc.change(&c)
		bad, ok := errors.AsType[*Invalid](c.Validate())
		if !ok || bad.Key != tc.key || !strings.HasPrefix(bad.Error(), tc.key+" ") {
			t.Errorf("%s: got %v, want a complaint about %s", name, bad, tc.key)
		}
	}
	if (&Config{}).Enabled() || !(&Config{StateDir: "/x"}).Enabled() {
		t.Error("what says nothing is off")
	}
}
