// Package hub is the service: it wires store, fleet, ingest, gate and API
// together, starts them in order and stops them in reverse.
package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/landfall-hub/landfall/hub/api"
	"github.com/landfall-hub/landfall/hub/auth"
	"github.com/landfall-hub/landfall/hub/catalog"
	"github.com/landfall-hub/landfall/hub/compliance"
	"github.com/landfall-hub/landfall/hub/control"
	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/hub/fleet"
	"github.com/landfall-hub/landfall/hub/fold"
	"github.com/landfall-hub/landfall/hub/gate"
	"github.com/landfall-hub/landfall/hub/gitops"
	"github.com/landfall-hub/landfall/hub/ingest"
	"github.com/landfall-hub/landfall/hub/landing"
	"github.com/landfall-hub/landfall/hub/overview"
	"github.com/landfall-hub/landfall/hub/store"
	"github.com/landfall-hub/landfall/internal/gitlink"
	"github.com/landfall-hub/landfall/internal/lifecycle"
)

// Options configure a Hub.
type Options struct {
	Config  Config
	Version string
	Log     *slog.Logger
	// EngineBinary and EngineLibrary are landfall-engine and libchdb; empty for
	// those beside this program.
	EngineBinary, EngineLibrary string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Hub is the service. It listens from New on, so that callers that asked for
// port 0 can learn the Address.
type Hub struct {
	opts     Options
	registry *prometheus.Registry
	listener net.Listener
	server   *server
	// engine is nil where a ClickHouse server is used.
	engine *engine.Engine
}

// New checks the settings, takes the port and starts nothing.
func New(opts Options) (*Hub, error) {
	if err := opts.Config.validate(); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		return nil, errors.New("a logger is needed")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	open, err := opts.Config.Webhooks.check()
	if err != nil {
		return nil, err
	}
	for _, file := range open {
		opts.Log.Warn("a webhook's secret can be read by everybody on this machine; chmod o-rwx would change that", "file", file)
	}
	h := &Hub{opts: opts, registry: prometheus.NewRegistry()}
	h.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := os.MkdirAll(opts.Config.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data folder (--data-dir): %w", err)
	}
	if opts.Config.ClickHouse.URL == "" {
		readers, err := h.readers()
		if err != nil {
			return nil, err
		}
		e, err := engine.New(engine.Options{
			Path: filepath.Join(opts.Config.DataDir, "clickhouse"), Binary: opts.EngineBinary, Library: opts.EngineLibrary,
			Reader: readers, Log: opts.Log, Registerer: h.registry,
		})
		if err != nil {
			return nil, err
		}
		h.engine = e
	}
	listener, err := net.Listen("tcp", opts.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening (choose another address with --listen): %w", err)
	}
	h.listener = listener
	h.server = newServer(opts.Log)
	return h, nil
}

// readers says who may read the embedded ClickHouse from outside, or nil.
func (h *Hub) readers() (*engine.Reader, error) {
	c := h.opts.Config.ClickHouse
	if c.Listen == "" {
		return nil, nil //nolint:nilnil // no readers is what most hubs have
	}
	password, open, err := engine.ReadPassword(c.ReaderPasswordFile)
	if err != nil {
		return nil, fmt.Errorf("clickhouse.reader_password_file: %w", err)
	}
	if open {
		h.opts.Log.Warn("the readers' password can be read by everybody on this machine; chmod o-rwx would change that", "file", c.ReaderPasswordFile)
	}
	return &engine.Reader{Listen: c.Listen, Password: password, Database: store.DefaultDatabase, Tables: store.ReaderTables()}, nil
}

// ReaderAddress is where readers from outside are served, host:port; empty
// without them, and before the embedded ClickHouse is up.
func (h *Hub) ReaderAddress() string {
	if h.engine == nil {
		return ""
	}
	return h.engine.ReaderAddress()
}

// Address is where the API is served, host:port.
func (h *Hub) Address() string { return h.listener.Addr().String() }

// URL is the API's base URL.
func (h *Hub) URL() string { return "http://" + h.Address() }

// How long each part may take to stop.
const (
	engineGrace = 30 * time.Second
	httpGrace   = 15 * time.Second
	workerGrace = 15 * time.Second
)

// parts are what the hub is made of once it has a store.
type parts struct {
	store    *store.Store
	fleet    *fleet.Fleet
	ingester *ingest.Ingester
	mirrors  *gitops.Mirrors
	catalog  *catalog.Catalog
	control  *control.Control
	tokens   *auth.Tokens
	api      *api.API
}

// Run serves until ctx ends. The first part that fails stops all the others;
// what is acknowledged is stored by then.
func (h *Hub) Run(ctx context.Context) error {
	l := lifecycle.New(ctx, h.opts.Log)
	defer l.Stop()
	if h.engine != nil {
		l.Start("engine", engineGrace, h.engine.Run)
	}
	l.Start("http", httpGrace, func(ctx context.Context) error { return h.server.run(ctx, h.listener) })
	p, err := h.assemble(l.Context())
	if err != nil {
		if stopped := l.Failed(); stopped != nil {
			return stopped
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	// After the engine has started and before all that uses it: closed in between.
	l.StartBefore("http", "store", workerGrace, func(ctx context.Context) error {
		<-ctx.Done()
		return p.store.Close()
	})
	l.StartBefore("http", "tokens", workerGrace, p.tokens.Run)
	l.StartBefore("http", "fleet", workerGrace, p.fleet.Run)
	l.StartBefore("http", "ingest", workerGrace, p.ingester.Run)
	l.StartBefore("http", "mirrors", workerGrace, p.mirrors.Run)
	l.StartBefore("http", "catalog", workerGrace, p.catalog.Run)
	l.StartBefore("http", "control", workerGrace, p.control.Run)
	h.server.use(p.api.Handler())
	h.opts.Log.Info("ready", "url", h.URL(), "version", h.opts.Version)
	if address := h.ReaderAddress(); address != "" {
		h.opts.Log.Info("readers from outside are served", "address", address, "user", engine.ReaderUser)
	}
	return l.Wait()
}

// assemble waits for ClickHouse, brings its schema up to date and builds what
// needs it.
func (h *Hub) assemble(ctx context.Context) (*parts, error) {
	url := h.opts.Config.ClickHouse.URL
	options := store.Options{Cluster: h.opts.Config.ClickHouse.Cluster, HistoryDays: h.opts.Config.HistoryDays, FsyncAfterInsert: h.opts.Config.ClickHouse.FsyncAfterInsert, Log: h.opts.Log, Registerer: h.registry}
	if h.engine != nil {
		if err := h.engine.WaitReady(ctx); err != nil {
			return nil, err
		}
		url, options.DialContext = h.engine.URL(), h.engine.DialContext
	}
	options.URL = url
	s, err := store.Open(options)
	if err != nil {
		return nil, err
	}
	if err := h.migrate(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	p, err := h.build(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return p, nil
}

const (
	// startTimeout is how long a hub waits for a ClickHouse server to answer.
	startTimeout = 5 * time.Minute
	startPause   = time.Second
)

// migrate tries until ClickHouse answers: a server may start after its hub.
func (h *Hub) migrate(ctx context.Context, s *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := s.Migrate(ctx)
		if err == nil || errors.Is(err, store.ErrNewerSchema) || errors.Is(err, store.ErrEditedSchema) || store.IsRejected(err) {
			return err
		}
		h.opts.Log.Warn("no answer from ClickHouse yet", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(startPause):
		}
	}
}

func (h *Hub) build(ctx context.Context, s *store.Store) (*parts, error) {
	c, log := h.opts.Config, h.opts.Log
	rules := compliance.Rules{SilentAfter: c.Compliance.SilentAfter, AgeAfter: time.Duration(c.Compliance.AgeAfter)}
	shared := h.engine == nil
	p := &parts{store: s}
	var err error
	var g *gate.Gate
	p.fleet, err = fleet.New(fleet.Options{
		Store: s, SilentAfter: rules.SilentAfter, Shared: shared, Now: h.opts.Now, Log: log, Registerer: h.registry,
		Changed: func(cluster string) {
			if g != nil {
				g.ClusterChanged(cluster)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if err := p.fleet.Load(ctx); err != nil {
		return nil, err
	}
	landings, err := landing.New(landing.Options{Store: s, Shared: shared, Registerer: h.registry})
	if err != nil {
		return nil, err
	}
	p.mirrors, err = gitops.New(gitops.Options{
		Repositories: c.repositories(), Dir: filepath.Join(c.DataDir, "mirrors"), Log: log, Registerer: h.registry,
		Changed: func(repo string) {
			g.RepositoryChanged(repo)
			p.catalog.Changed(repo)
		},
	})
	if err != nil {
		return nil, err
	}
	p.catalog, err = catalog.New(catalog.Options{
		Mirrors: p.mirrors, Reader: s, Writer: s, Dir: filepath.Join(c.DataDir, "names"), Log: log, Registerer: h.registry, Now: h.opts.Now,
	})
	if err != nil {
		return nil, err
	}
	if err := p.catalog.Load(ctx); err != nil {
		return nil, err
	}
	p.control, err = control.New(control.Options{
		ControlPlanes: c.controlPlanes(), Known: c.known(), Dir: filepath.Join(c.DataDir, "control"), Store: s, Shared: shared,
		Published: func(repo string) { p.mirrors.Fetch(repo) },
		Expecting: func() {
			if g != nil {
				g.ExpectationsChanged()
			}
		},
		DefaultBranch: p.defaultBranch, Now: h.opts.Now, Log: log, Registerer: h.registry,
	})
	if err != nil {
		return nil, err
	}
	if err := p.control.Load(ctx); err != nil {
		return nil, err
	}
	g, err = gate.New(gate.Options{
		Landings: landings, Store: s, Fleet: p.fleet, Rules: rules, Graph: p.mirrors.Graph, Names: p.mirrors.Names, Expectations: p.control,
		Shared: shared, Now: h.opts.Now, Log: log, Registerer: h.registry,
	})
	if err != nil {
		return nil, err
	}
	p.ingester, err = ingest.New(ingest.Options{
		Store: s, Fleet: p.fleet, Shared: shared, Permanent: store.IsRejected,
		Storing: landings.Storing, Unsure: landings.Unsure,
		Stored: func(batch []fold.Changes) {
			landings.Stored(batch)
			g.Stored(batch) // wakes those who look again
		},
		Now: h.opts.Now, Log: log, Registerer: h.registry,
	})
	if err != nil {
		return nil, err
	}
	if err := p.ingester.Load(ctx); err != nil {
		return nil, err
	}
	if err := h.authenticate(ctx, p); err != nil {
		return nil, err
	}
	links, err := gitlink.New(c.Links)
	if err != nil {
		return nil, err
	}
	view, err := overview.New(overview.Options{
		Current: s, Past: s, Fleet: p.fleet, Names: p.catalog, Links: links, Graph: p.mirrors.Graph, Now: h.opts.Now,
	})
	if err != nil {
		return nil, err
	}
	p.api, err = api.New(api.Options{
		Ingester: p.ingester, Gate: g, Fleet: fleet.NewView(p.fleet, s), Overview: view, Figures: view, Assignments: p.control, Descriptors: p.catalog, Tokens: p.tokens,
		Health: h.health(p), Webhooks: c.Webhooks.webhooks(p.fetch),
		Logger: log, Registerer: h.registry, Gatherer: h.registry, Version: h.opts.Version, Now: h.opts.Now,
	})
	return p, err
}

// authenticate reads the tokens, and makes the first one where anybody but
// this machine can reach the hub.
func (h *Hub) authenticate(ctx context.Context, p *parts) error {
	local := loopback(h.opts.Config.Listen)
	tokens, err := auth.New(auth.Options{
		Store: p.store, LoopbackOnly: local, DataDir: h.opts.Config.DataDir, Logger: h.opts.Log, Registerer: h.registry, Now: h.opts.Now,
	})
	if err != nil {
		return err
	}
	p.tokens = tokens
	if err := tokens.Refresh(ctx); err != nil {
		return err
	}
	if local {
		return nil
	}
	path, err := tokens.Bootstrap(ctx)
	if err != nil {
		return err
	}
	if path != "" {
		h.opts.Log.Info("the hub can be reached from other machines: calls need a token", "admin_token_file", path)
	}
	return nil
}

// fetch has a repository fetched by all who read it, because something was pushed
// to it; false where nobody does.
func (p *parts) fetch(repo string) bool {
	followed, planned := p.mirrors.Fetch(repo), p.control.Fetch(repo)
	return followed || planned
}

// defaultBranch returns the default branch of a repository; "" where that is not
// known.
func (p *parts) defaultBranch(repo string) string {
	if h, ok := p.mirrors.History(repo); ok {
		return h.Default()
	}
	return ""
}

// health says what /readyz shows.
func (h *Hub) health(p *parts) func(context.Context) []api.Check {
	return func(ctx context.Context) []api.Check {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		check := api.Check{Name: "clickhouse", OK: true, Detail: "answers"}
		if err := p.store.Ping(ctx); err != nil {
			h.opts.Log.Warn("not ready", "error", err)
			check.OK, check.Detail = false, "does not answer; the hub's log says why"
		}
		checks := []api.Check{check}
		for _, m := range p.mirrors.States() {
			if n, first := p.catalog.Problems(m.Repo); n > 0 {
				m.Detail += fmt.Sprintf("; problems with its documents: %d, the first: %s", n, first)
			}
			checks = append(checks, api.Check{Name: "repository " + m.Repo, OK: m.OK, Detail: m.Detail, Minor: true})
		}
		for _, c := range p.control.States() {
			checks = append(checks, api.Check{Name: "control plane " + c.Repo, OK: c.OK, Detail: c.Detail, Minor: true})
		}
		return checks
	}
}
