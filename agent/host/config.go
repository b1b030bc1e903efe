package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/schema"
)

// Config is what an agent on a host is told: the member "host" of agent.yaml.
type Config struct {
	// StateDir holds the mirrors, the work directories and what is known of each
	// folder. One agent at a time may have it.
	StateDir string `yaml:"state_dir"`
	// Parallel is how many folders are fetched and applied at the same time.
	Parallel int            `yaml:"parallel"`
	Folders  []FolderConfig `yaml:"folders"`
}

// FolderConfig is a folder of a repository that is followed.
type FolderConfig struct {
	// Name is the reconciler's, and that of the folder's work directory.
	Name string `yaml:"name"`
	// Repo is http(s)://, ssh://, host:path, file:// or an absolute folder.
	Repo string `yaml:"repo"`
	// Ref is a branch, a full name such as refs/tags/v1 or a full commit id; empty
	// is the default branch.
	Ref string `yaml:"ref"`
	// Path is the folder; empty is the whole repository.
	Path string `yaml:"path"`
	// Interval is how often the repository is looked at.
	Interval schema.Duration `yaml:"interval"`
	Auth     AuthConfig      `yaml:"auth"`
	// Suspend leaves the folder alone, and says so.
	Suspend bool        `yaml:"suspend"`
	Apply   ApplyConfig `yaml:"apply"`
}

// AuthConfig says as whom to speak to the Git server; see gitrepo.Auth.
type AuthConfig struct {
	Username       string `yaml:"username"`
	TokenFile      string `yaml:"token_file"`
	SSHKeyFile     string `yaml:"ssh_key_file"`
	KnownHostsFile string `yaml:"known_hosts_file"`
	CAFile         string `yaml:"ca_file"`
}

// ApplyConfig is the command that makes the machine what the folder says.
type ApplyConfig struct {
	// Shell is run by /bin/sh -c; Argv is a program and its arguments, run
	// without a shell. One of them is given.
	Shell string   `yaml:"shell"`
	Argv  []string `yaml:"argv"`
	// Dir is where it runs: absolute, or below the work directory that holds the
	// folder, which is the default.
	Dir     string          `yaml:"dir"`
	Timeout schema.Duration `yaml:"timeout"`
	// Env are variables for the command; PassEnv names those that it gets from
	// the agent's own environment. PATH and HOME are always among them.
	Env     map[string]string `yaml:"env"`
	PassEnv []string          `yaml:"pass_env"`
}

// Defaults of what a configuration leaves out.
const (
	DefaultParallel = 4
	DefaultInterval = schema.Duration(time.Minute)
	DefaultTimeout  = schema.Duration(5 * time.Minute)
)

// Invalid is what is wrong with a configuration, at a key such as
// folders[0].apply.
type Invalid struct{ Key, Text string }

func (e *Invalid) Error() string { return e.Key + " " + e.Text }

func badly(key, format string, args ...any) error {
	return &Invalid{Key: key, Text: fmt.Sprintf(format, args...)}
}

// Enabled reports whether there is anything to do.
func (c *Config) Enabled() bool { return c.StateDir != "" || len(c.Folders) > 0 || c.Parallel != 0 }

// withDefaults returns a copy that says everything.
func (c Config) withDefaults() Config {
	if c.Parallel == 0 {
		c.Parallel = DefaultParallel
	}
	c.Folders = slices.Clone(c.Folders)
	for i := range c.Folders {
		f := &c.Folders[i]
		if f.Interval == 0 {
			f.Interval = DefaultInterval
		}
		if f.Apply.Timeout == 0 {
			f.Apply.Timeout = DefaultTimeout
		}
	}
	return c
}

// Validate says what is wrong with the configuration. The error is an *Invalid.
func (c *Config) Validate() error {
	full := c.withDefaults()
	if !filepath.IsAbs(full.StateDir) {
		return badly("state_dir", "is an absolute folder, such as /var/lib/landfall, not %q", full.StateDir)
	}
	if full.Parallel < 1 || full.Parallel > 64 {
		return badly("parallel", "is from 1 to 64, not %d", full.Parallel)
	}
	names := map[string]bool{}
	for i := range full.Folders {
		at, f := fmt.Sprintf("folders[%d]", i), &full.Folders[i]
		if err := f.validate(at, full.StateDir); err != nil {
			return err
		}
		if names[f.Name] {
			return badly(at+".name", "stands there twice: %s", f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

func (f *FolderConfig) validate(at, stateDir string) error {
	if !isName(f.Name) {
		return badly(at+".name", "has 1 to 63 letters, digits and -_. and begins with a letter or a digit, not %q", f.Name)
	}
	if f.Repo == "" {
		return badly(at+".repo", "is missing: say where the repository is")
	}
	if _, err := gitrepo.Open(f.repo(stateDir)); err != nil {
		return badly(at+".repo", "does not do: %v", err)
	}
	if _, err := schema.CanonicalRef(f.Ref); err != nil {
		return badly(at+".ref", "does not do: %v", err)
	}
	if strings.HasPrefix(f.Ref, "semver:") {
		return badly(at+".ref", "is a branch, a full name such as refs/tags/v1 or a full commit id; ranges of versions are not followed")
	}
	if _, err := schema.CleanPath(f.Path); err != nil {
		return badly(at+".path", "does not do: %v", err)
	}
	if d := time.Duration(f.Interval); d < time.Second || d > 24*time.Hour {
		return badly(at+".interval", "is from 1s to 24h, not %s", f.Interval)
	}
	return f.Apply.validate(at + ".apply")
}

// isName reports whether s may name a folder on any file system.
func isName(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("-_.", rune(c))) {
			return false
		}
	}
	return true
}

// reserved begins the names of the variables that the agent sets and reads.
const reserved = "LANDFALL_"

func (a *ApplyConfig) validate(at string) error {
	if (a.Shell == "") == (len(a.Argv) == 0) {
		return badly(at, "needs one of shell and argv: a command for /bin/sh, or a program with its arguments")
	}
	if len(a.Argv) > 0 && a.Argv[0] == "" {
		return badly(at+".argv", "begins with the program, not with an empty text")
	}
	if d := time.Duration(a.Timeout); d < time.Second || d > 24*time.Hour {
		return badly(at+".timeout", "is from 1s to 24h, not %s", a.Timeout)
	}
	if a.Dir != "" && !filepath.IsAbs(a.Dir) && !filepath.IsLocal(a.Dir) {
		return badly(at+".dir", "climbs out of the folder: %q", a.Dir)
	}
	for _, text := range append([]string{a.Shell, a.Dir}, a.Argv...) {
		if strings.ContainsRune(text, 0) {
			return badly(at, "holds a NUL, which no command can")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		if err := variable(at+".env", name); err != nil {
			return err
		}
		if strings.ContainsRune(a.Env[name], 0) {
			return badly(at+".env", "%s holds a NUL, which no variable can", name)
		}
	}
	for i, name := range a.PassEnv {
		if err := variable(fmt.Sprintf("%s.pass_env[%d]", at, i), name); err != nil {
			return err
		}
	}
	return nil
}

func variable(at, name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return badly(at, "needs names of variables, not %q", name)
	}
	if strings.HasPrefix(name, reserved) {
		return badly(at, "may not hold %s: names with %s are the agent's own", name, reserved)
	}
	return nil
}

// digest tells one apply command from another.
func (a *ApplyConfig) digest() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // strings, numbers and maps of them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// source tells one place in Git from another.
func (f *FolderConfig) source() string {
	e, err := schema.NewEndpoint(f.Repo, f.Ref, f.Path)
	if err != nil {
		return "" // validated
	}
	return e.Repo + " " + e.Ref + " " + e.Path
}

// repo returns the options of the folder's mirror. Folders that read the same
// repository as the same user share one.
func (f *FolderConfig) repo(stateDir string) gitrepo.Options {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", f.Repo, f.Auth))
	return gitrepo.Options{
		URL: f.Repo, Auth: gitrepo.Auth(f.Auth), Depth: 1,
		Dir: filepath.Join(stateDir, mirrorsDir, hex.EncodeToString(sum[:8])),
	}
}
