package agent

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/landfall-hub/landfall/agent/host"
	"github.com/landfall-hub/landfall/internal/hubclient"
	"github.com/landfall-hub/landfall/internal/settings"
	"github.com/landfall-hub/landfall/schema"
)

// Config is what agent.yaml, the environment and the flags say. Flags override
// the environment, which overrides the file.
type Config struct {
	Cluster ClusterConfig `yaml:"cluster"`
	Hub     HubConfig     `yaml:"hub"`
	// HeartbeatInterval is how often the hub hears of the agent at least; after
	// five of them the cluster is silent.
	HeartbeatInterval schema.Duration  `yaml:"heartbeat_interval"`
	Kubernetes        KubernetesConfig `yaml:"kubernetes"`
	Flux              FluxConfig       `yaml:"flux"`
	ArgoCD            ArgoCDConfig     `yaml:"argocd"`
	// Host is for a machine without Kubernetes: where it says something, no API
	// server is looked for.
	Host host.Config `yaml:"host"`
	// Listen is the address of health and metrics.
	Listen string    `yaml:"listen"`
	Log    LogConfig `yaml:"log"`
}

// ClusterConfig is what the cluster is registered as.
type ClusterConfig struct {
	Name        string             `yaml:"name"`
	Memberships []MembershipConfig `yaml:"memberships"`
	Labels      map[string]string  `yaml:"labels"`
}

// MembershipConfig places the cluster in an environment as one of a cluster
// type.
type MembershipConfig struct {
	Environment string `yaml:"environment"`
	Type        string `yaml:"type"`
}

// HubConfig says where the hub is, and as whom to speak to it.
type HubConfig struct {
	URL string `yaml:"url"`
	// Token is the agent's token; TokenFile holds it instead, and is read anew
	// for every request.
	Token     string `yaml:"token"`
	TokenFile string `yaml:"token_file"`
	// CAFile holds certificates (PEM) that are trusted beside the system's.
	CAFile string `yaml:"ca_file"`
}

// KubernetesConfig says where the API server is.
type KubernetesConfig struct {
	// Kubeconfig is a file; empty in a cluster, for the Pod's own account.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context of that file; empty for its current one.
	Context string `yaml:"context"`
	// DiscoveryInterval is how often to look for kinds that came, went or may no
	// longer be listed.
	DiscoveryInterval schema.Duration `yaml:"discovery_interval"`
}

// FluxConfig is about Flux.
type FluxConfig struct {
	Enabled bool `yaml:"enabled"`
}

// ArgoCDConfig is about Argo CD.
type ArgoCDConfig struct {
	Enabled bool `yaml:"enabled"`
	// Namespace is where Argo CD itself runs.
	Namespace string `yaml:"namespace"`
	// TrackingLabel is its application.instanceLabelKey; empty where it tracks by
	// annotation alone.
	TrackingLabel string `yaml:"tracking_label"`
	// Destinations are the clusters that it deploys to besides this one.
	Destinations []DestinationConfig `yaml:"destinations"`
}

// DestinationConfig is a cluster as Argo CD knows it, and as the hub does.
type DestinationConfig struct {
	Name    string `yaml:"name"`
	Server  string `yaml:"server"`
	Cluster string `yaml:"cluster"`
}

// LogConfig says how much is logged, and how.
type LogConfig struct {
	Level  slog.Level `yaml:"level"`
	Format string     `yaml:"format"`
}

// The formats of the log.
const (
	formatText = "text"
	formatJSON = "json"
)

// DefaultConfig is what holds where nothing is said. It lacks the cluster's
// name and the hub's address.
func DefaultConfig() Config {
	return Config{
		HeartbeatInterval: schema.DefaultHeartbeatInterval,
		Kubernetes:        KubernetesConfig{DiscoveryInterval: schema.Duration(30 * time.Second)},
		Flux:              FluxConfig{Enabled: true},
		ArgoCD:            ArgoCDConfig{Enabled: true, Namespace: "argocd", TrackingLabel: "app.kubernetes.io/instance"},
		Listen:            "127.0.0.1:8081",
		Log:               LogConfig{Format: formatText},
	}
}

// configuration is how the settings are read.
var configuration = settings.Settings[Config]{
	Default:  DefaultConfig,
	Flags:    (*Config).flags,
	Validate: (*Config).validate,
	Secrets:  map[string]func(*Config) *string{"LANDFALL_TOKEN": func(c *Config) *string { return &c.Hub.Token }},
	Keys: map[string]string{ //nolint:gosec // names of settings
		"cluster": "cluster.name", "memberships": "cluster.memberships", "labels": "cluster.labels",
		"hub": "hub.url", "token-file": "hub.token_file", "ca-file": "hub.ca_file",
		"kubeconfig": "kubernetes.kubeconfig", "context": "kubernetes.context", "discovery-interval": "kubernetes.discovery_interval",
		"flux": "flux.enabled", "argocd": "argocd.enabled", "argocd-namespace": "argocd.namespace",
		"log-level": "log.level", "log-format": "log.format",
	},
}

// flags are the settings that flags and the environment may change.
func (c *Config) flags(set *flag.FlagSet) {
	set.StringVar(&c.Cluster.Name, "cluster", c.Cluster.Name, "name of the cluster")
	set.Func("memberships", "environment/type, more after commas", func(s string) error { return c.setMemberships(s) })
	set.Func("labels", "key=value, more after commas", func(s string) error { return c.setLabels(s) })
	set.StringVar(&c.Hub.URL, "hub", c.Hub.URL, "address of the hub")
	set.StringVar(&c.Hub.TokenFile, "token-file", c.Hub.TokenFile, "file that holds the agent's token")
	set.StringVar(&c.Hub.CAFile, "ca-file", c.Hub.CAFile, "certificates to trust for the hub")
	set.Func("heartbeat-interval", "how often the hub hears of the agent", func(s string) error { return c.HeartbeatInterval.UnmarshalText([]byte(s)) })
	set.StringVar(&c.Kubernetes.Kubeconfig, "kubeconfig", c.Kubernetes.Kubeconfig, "how to reach the API server")
	set.StringVar(&c.Kubernetes.Context, "context", c.Kubernetes.Context, "context of the kubeconfig")
	set.Func("discovery-interval", "how often to look for kinds", func(s string) error { return c.Kubernetes.DiscoveryInterval.UnmarshalText([]byte(s)) })
	set.BoolVar(&c.Flux.Enabled, "flux", c.Flux.Enabled, "watch Flux")
	set.BoolVar(&c.ArgoCD.Enabled, "argocd", c.ArgoCD.Enabled, "watch Argo CD")
	set.StringVar(&c.ArgoCD.Namespace, "argocd-namespace", c.ArgoCD.Namespace, "where Argo CD runs")
	set.StringVar(&c.Listen, "listen", c.Listen, "address of health and metrics")
	set.TextVar(&c.Log.Level, "log-level", c.Log.Level, "debug, info, warn or error")
	set.StringVar(&c.Log.Format, "log-format", c.Log.Format, "text or json")
}

func (c *Config) setMemberships(s string) error {
	c.Cluster.Memberships = nil
	for item := range strings.SplitSeq(s, ",") {
		environment, clusterType, ok := strings.Cut(strings.TrimSpace(item), "/")
		if !ok {
			return fmt.Errorf("a membership is environment/type, not %q", item)
		}
		c.Cluster.Memberships = append(c.Cluster.Memberships, MembershipConfig{Environment: environment, Type: clusterType})
	}
	return nil
}

func (c *Config) setLabels(s string) error {
	c.Cluster.Labels = map[string]string{}
	for item := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return fmt.Errorf("a label is key=value, not %q", item)
		}
		c.Cluster.Labels[key] = value
	}
	return nil
}

// registration is what the cluster says of itself. It may report for every
// cluster that a destination names.
func (c *Config) registration(version string) schema.Registration {
	r := schema.Registration{
		Memberships: []schema.Membership{}, Labels: c.Cluster.Labels, Kind: c.clusterKind(),
		HeartbeatInterval: c.HeartbeatInterval, Agent: schema.Agent{Version: version},
	}
	for _, m := range c.Cluster.Memberships {
		r.Memberships = append(r.Memberships, schema.Membership(m))
	}
	others := map[string]bool{}
	for _, d := range c.ArgoCD.Destinations {
		others[d.Cluster] = d.Cluster != c.Cluster.Name
	}
	delete(others, c.Cluster.Name)
	r.ReportsFor = slices.Sorted(maps.Keys(others))
	return r
}

func (c *Config) validate() error {
	if c.Cluster.Name == "" {
		return settings.Badly("cluster.name", "is missing: say what this cluster is called (--cluster, LANDFALL_CLUSTER)")
	}
	if err := schema.ValidateClusterName(c.Cluster.Name); err != nil {
		return settings.Badly("cluster.name", "is no name: %v", err)
	}
	if err := c.validateHub(); err != nil {
		return err
	}
	if err := c.validateDestinations(); err != nil {
		return err
	}
	r := c.registration("")
	if err := r.Validate(); err != nil {
		return registrationError(err)
	}
	if c.HeartbeatInterval == 0 {
		return settings.Badly("heartbeat_interval", "is from 1s to 24h, not 0s")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return settings.Badly("listen", "is host:port, such as 127.0.0.1:8081, not %q", c.Listen)
	}
	if c.Log.Format != formatText && c.Log.Format != formatJSON {
		return settings.Badly("log.format", "is text or json, not %q", c.Log.Format)
	}
	if c.Host.Enabled() {
		return c.validateHost()
	}
	if d := time.Duration(c.Kubernetes.DiscoveryInterval); d < 100*time.Millisecond || d > time.Hour {
		return settings.Badly("kubernetes.discovery_interval", "is from 100ms to 1h, not %s", c.Kubernetes.DiscoveryInterval)
	}
	if c.Kubernetes.Context != "" && c.Kubernetes.Kubeconfig == "" {
		return settings.Badly("kubernetes.context", "needs kubernetes.kubeconfig, the file that has it")
	}
	if !c.Flux.Enabled && !c.ArgoCD.Enabled {
		return settings.Badly("flux.enabled", "and argocd.enabled are both false: there is nothing to report")
	}
	return nil
}

func (c *Config) validateHost() error {
	if c.Kubernetes.Kubeconfig != "" || len(c.ArgoCD.Destinations) > 0 {
		return settings.Badly("host", "and an API server are two clusters: run two agents, each with its own cluster.name")
	}
	err := c.Host.Validate()
	if bad, ok := errors.AsType[*host.Invalid](err); ok {
		return settings.Badly("host."+bad.Key, "%s", bad.Text)
	}
	return err
}

func (c *Config) validateHub() error {
	if c.Hub.URL == "" {
		return settings.Badly("hub.url", "is missing: say where the hub is, such as https://hub.example (--hub, LANDFALL_HUB)")
	}
	if c.Hub.Token != "" && c.Hub.TokenFile != "" {
		return settings.Badly("hub.token_file", "and hub.token (LANDFALL_TOKEN) are both given: give one")
	}
	if _, err := hubclient.New(hubclient.Options{URL: c.Hub.URL}); err != nil {
		return settings.Badly("hub.url", "does not do: %v", err)
	}
	return nil
}

func (c *Config) validateDestinations() error {
	names, servers := map[string]bool{}, map[string]bool{}
	for i, d := range c.ArgoCD.Destinations {
		at := fmt.Sprintf("argocd.destinations[%d]", i)
		if d.Name == "" && d.Server == "" {
			return settings.Badly(at, "needs name or server, as Argo CD has them")
		}
		if err := schema.ValidateClusterName(d.Cluster); err != nil {
			return settings.Badly(at+".cluster", "is the name that the hub knows the cluster by: %v", err)
		}
		if server := plainServer(d.Server); d.Name != "" && names[d.Name] || server != "" && servers[server] {
			return settings.Badly(at, "stands there twice: an Application would have two clusters")
		}
		names[d.Name], servers[plainServer(d.Server)] = true, true
	}
	return nil
}

// registrationError words a complaint about the registration in the settings'
// own keys: /labels/a~1b is cluster.labels.a/b.
func registrationError(err error) error {
	bad, ok := errors.AsType[*schema.Invalid](err)
	if !ok {
		return err
	}
	key := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(bad.Pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case key == "":
			key = part
		case strings.Trim(part, "0123456789") == "":
			key += "[" + part + "]"
		default:
			key += "." + part
		}
	}
	if key != "heartbeat_interval" {
		key = strings.TrimSuffix("cluster."+key, ".")
	}
	return settings.Badly(key, "does not do: %s", bad.Detail)
}
