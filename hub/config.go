package hub

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/control"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/internal/gitlink"
	"github.com/landfall-hub/landfall/internal/gitrepo"
	"github.com/landfall-hub/landfall/internal/settings"
	"github.com/landfall-hub/landfall/schema"
)

// Config is what hub.yaml, the environment and the flags say. Flags override
// the environment, which overrides the file.
type Config struct {
	// Listen is the address of the HTTP API.
	Listen string `yaml:"listen"`
	// DataDir holds the embedded ClickHouse, the mirrors of the repositories and
	// the first admin token.
	DataDir    string           `yaml:"data_dir"`
	ClickHouse ClickHouseConfig `yaml:"clickhouse"`
	Compliance ComplianceConfig `yaml:"compliance"`
	// HistoryDays is how long history is kept.
	HistoryDays int `yaml:"history_days"`

	// Repositories are followed.
	Repositories []RepositoryConfig `yaml:"repositories"`
	// Webhooks tell of pushes to them.
	Webhooks WebhooksConfig `yaml:"webhooks"`
	// Links are the providers of Git servers whose host names do not tell.
	Links map[string]gitlink.Provider `yaml:"links"`
	// ControlPlanes are followed, planned and published.
	ControlPlanes []ControlPlaneConfig `yaml:"control_planes"`
}

// ClickHouseConfig says which ClickHouse is used; the embedded one by default.
type ClickHouseConfig struct {
	URL     string `yaml:"url"`
	Cluster string `yaml:"cluster"`
	// FsyncAfterInsert has each insert reach the disk before it is acknowledged.
	FsyncAfterInsert bool `yaml:"fsync_after_insert"`
	// Listen is a second address of the embedded ClickHouse, for readers from
	// outside such as Grafana; empty for none.
	Listen string `yaml:"listen"`
	// ReaderPasswordFile holds the password of their one user.
	ReaderPasswordFile string `yaml:"reader_password_file"`
}

// validate checks the settings of ClickHouse.
func (c ClickHouseConfig) validate() error {
	if c.URL != "" {
		if err := store.CheckURL(c.URL); err != nil {
			return fmt.Errorf("clickhouse.url: %w", err)
		}
	}
	if c.Cluster != "" && c.URL == "" {
		return errors.New("clickhouse.cluster needs clickhouse.url: the embedded ClickHouse is one machine")
	}
	if c.Listen == "" {
		if c.ReaderPasswordFile != "" {
			return errors.New("clickhouse.reader_password_file needs clickhouse.listen")
		}
		return nil
	}
	if c.URL != "" {
		return errors.New("clickhouse.listen is for the embedded ClickHouse: with clickhouse.url, readers go to that server")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("clickhouse.listen is host:port, such as 127.0.0.1:8123, not %q", c.Listen)
	}
	if c.ReaderPasswordFile == "" {
		return errors.New("clickhouse.listen needs clickhouse.reader_password_file: readers log in with a password")
	}
	return nil
}

// ComplianceConfig holds the rules that all gates share.
type ComplianceConfig struct {
	// SilentAfter is how many heartbeat intervals a cluster may be unheard of.
	SilentAfter int `yaml:"silent_after"`
	// AgeAfter is how long a wait for an artifact or a dependency counts as in
	// progress.
	AgeAfter schema.Duration `yaml:"age_after"`
}

// RepositoryConfig is a GitOps repository whose commits are followed.
type RepositoryConfig struct {
	// URL is where it is fetched from; Aliases are other addresses of the same
	// repository, by which reconcilers or people may name it.
	URL     string   `yaml:"url"`
	Aliases []string `yaml:"aliases"`
	// Refs are branches, or tags as refs/tags/x; none is every branch.
	Refs     []string        `yaml:"refs"`
	Interval schema.Duration `yaml:"interval"`
	Auth     AuthConfig      `yaml:"auth"`
	// Forge is for a repository that plans are published to by pull requests.
	Forge *ForgeConfig `yaml:"forge"`
}

// ForgeConfig says how the Git provider of a repository is spoken to about pull
// requests and commit statuses.
type ForgeConfig struct {
	// Provider is github or gitea; it may be left out for github.com.
	Provider string `yaml:"provider"`
	// API is its address where the repository's does not say.
	API string `yaml:"api"`
	// TokenFile and CAFile are those of the repository's auth where they are empty.
	TokenFile string `yaml:"token_file"`
	CAFile    string `yaml:"ca_file"`
}

// AuthConfig says as whom to fetch a repository, and whom to trust.
type AuthConfig struct {
	Username       string `yaml:"username"`
	TokenFile      string `yaml:"token_file"`
	SSHKeyFile     string `yaml:"ssh_key_file"`
	KnownHostsFile string `yaml:"known_hosts_file"`
	CAFile         string `yaml:"ca_file"`
}

// repositories returns what is to be followed.
func (c *Config) repositories() []gitops.Repository {
	all := make([]gitops.Repository, len(c.Repositories))
	for i, r := range c.Repositories {
		all[i] = gitops.Repository{
			URL: r.URL, Aliases: r.Aliases, Refs: r.Refs, Interval: time.Duration(r.Interval), Auth: gitrepo.Auth(r.Auth),
		}
	}
	return all
}

// ControlPlaneConfig is a control plane whose assignments are to be published.
type ControlPlaneConfig struct {
	// URL is where it is fetched from, with Auth; Aliases are other addresses.
	URL     string   `yaml:"url"`
	Aliases []string `yaml:"aliases"`
	// Main is the branch of the promoted content.
	Main string `yaml:"main"`
	// Environments are the branches of the environments, by name.
	Environments map[string]string  `yaml:"environments"`
	ConfigRepos  []ConfigRepoConfig `yaml:"config_repos"`
	// Publish is how plans are published: push or pull_request.
	Publish string `yaml:"publish"`
	// Interval is the time between two fetches of each repository that belongs to
	// it.
	Interval schema.Duration `yaml:"interval"`
	Auth     AuthConfig      `yaml:"auth"`
	// Forge is told how it stands with the environments.
	Forge *ForgeConfig `yaml:"forge"`
}

// ConfigRepoConfig is a repository whose ConfigMaps and schemas join
// environments.
type ConfigRepoConfig struct {
	URL string `yaml:"url"`
	// Environments are its branches, by the name of the environment.
	Environments map[string]string `yaml:"environments"`
	Auth         AuthConfig        `yaml:"auth"`
}

// controlPlanes returns what the scheduler is to be run on.
func (c *Config) controlPlanes() []control.ControlPlane {
	all := make([]control.ControlPlane, len(c.ControlPlanes))
	for i, p := range c.ControlPlanes {
		all[i] = control.ControlPlane{
			URL: p.URL, Aliases: p.Aliases, Main: p.Main, Environments: p.Environments, Publish: p.Publish,
			Interval: time.Duration(p.Interval), Auth: gitrepo.Auth(p.Auth), Forge: (*control.Forge)(p.Forge),
		}
		for _, r := range p.ConfigRepos {
			all[i].ConfigRepos = append(all[i].ConfigRepos, control.ConfigRepo{URL: r.URL, Environments: r.Environments, Auth: gitrepo.Auth(r.Auth)})
		}
	}
	return all
}

// known are the repositories whose credentials and providers are used for what
// control planes name, too.
func (c *Config) known() []control.Repository {
	all := make([]control.Repository, len(c.Repositories))
	for i, r := range c.Repositories {
		all[i] = control.Repository{URL: r.URL, Aliases: r.Aliases, Auth: gitrepo.Auth(r.Auth), Forge: (*control.Forge)(r.Forge)}
	}
	return all
}

// DefaultConfig is what holds where nothing is said.
func DefaultConfig() Config {
	rules := compliance.DefaultRules()
	return Config{
		Listen: "127.0.0.1:8080", DataDir: "./data", HistoryDays: 400,
		Compliance: ComplianceConfig{SilentAfter: rules.SilentAfter, AgeAfter: schema.Duration(rules.AgeAfter)},
	}
}

// flags are the settings that flags and the environment may change, with the
// field each one fills.
func (c *Config) flags(set *flag.FlagSet) {
	set.StringVar(&c.Listen, "listen", c.Listen, "address of the HTTP API")
	set.StringVar(&c.DataDir, "data-dir", c.DataDir, "folder of the embedded ClickHouse, the mirrors and the first admin token")
	set.StringVar(&c.ClickHouse.URL, "clickhouse-url", c.ClickHouse.URL, "a ClickHouse server, http(s)://… or clickhouse://…, instead of the embedded one")
	set.StringVar(&c.ClickHouse.Cluster, "clickhouse-cluster", c.ClickHouse.Cluster, "name of the ClickHouse cluster behind that server")
}

// configuration is how the settings are read.
var configuration = settings.Settings[Config]{Default: DefaultConfig, Flags: (*Config).flags, Validate: (*Config).validate}

func (c *Config) validate() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen is host:port, such as 127.0.0.1:8080, not %q", c.Listen)
	}
	if c.DataDir == "" {
		return errors.New("data_dir is a folder; it must not be empty")
	}
	if err := c.ClickHouse.validate(); err != nil {
		return err
	}
	if c.Compliance.SilentAfter < 1 || c.Compliance.SilentAfter > 1000 {
		return fmt.Errorf("compliance.silent_after is a number of heartbeats from 1 to 1000, not %d", c.Compliance.SilentAfter)
	}
	if age := time.Duration(c.Compliance.AgeAfter); age < time.Second || age > 24*time.Hour {
		return fmt.Errorf("compliance.age_after is from 1s to 24h, not %s", c.Compliance.AgeAfter)
	}
	if c.HistoryDays < 1 || c.HistoryDays > 36500 {
		return fmt.Errorf("history_days is from 1 to 36500, not %d", c.HistoryDays)
	}
	if err := gitops.Check(c.repositories()); err != nil {
		return err
	}
	if _, err := gitlink.New(c.Links); err != nil {
		return settings.Badly("links", "are wrong: %v", err)
	}
	return control.Check(c.controlPlanes(), c.known())
}

// loopback reports whether an address can be reached from this machine alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
