package arch

// A row says what the code of one folder may import beside the standard
// library and beside what is open to all.
type row struct {
	// folder is relative to the root of the repository. One that ends in /...
	// speaks for every folder below that has no row of its own.
	folder string
	// imports names folders of this module ("hub/..." is hub and all below it)
	// or module paths of libraries; "any" lifts the restriction. A standard
	// package is named only where purity would forbid it.
	imports []string
	// tests names what _test.go files may import besides.
	tests []string
	// pure code is a function of its arguments: see checkPure.
	pure bool
	// process marks the places that may read arguments, environment and
	// signals, and end the process.
	process bool
	// testSupport packages may be imported by tests only.
	testSupport bool
	// why is printed when the row is broken.
	why string
}

const (
	module = "github.com/landfall-hub/landfall"

	cmp        = "github.com/google/go-cmp"
	prometheus = "github.com/prometheus/client_golang"
	clickhouse = "github.com/ClickHouse/clickhouse-go/v2"
	chi        = "github.com/go-chi/chi/v5"
	compress   = "github.com/klauspost/compress"
	yaml       = "go.yaml.in/yaml/v3"
	sync       = "golang.org/x/sync"
	purego     = "github.com/ebitengine/purego"
)

// openToAll may be imported from anywhere; openOutsidePure from anywhere but
// pure packages; openToTests from every _test.go file.
var (
	openToAll       = []string{"schema"}
	openOutsidePure = []string{prometheus, sync}
	openToTests     = []string{cmp, prometheus, "github.com/prometheus/client_model", "internal/polltest"}
)

// wiring is what the root packages agent and hub may take beside their own
// parts: every internal package but internal/chdb.
var wiring = []string{
	"internal/command", "internal/forge", "internal/gitlink", "internal/gitrepo", "internal/httpserver", "internal/hubclient", "internal/lease", "internal/lifecycle", "internal/settings",
}

// rows is the table of the design, "what each folder may import", as data. It
// holds folders that later issues bring, so that they start inside the fences.
var rows = []row{
	{
		folder: "cmd/landfall", imports: []string{"internal/cli"}, process: true,
		why: "a program is signals, an exit code and one call; everything else must be testable without a process",
	},
	{
		folder: "cmd/landfall-hub", imports: []string{"hub"}, process: true,
		tests: []string{"hub/...", "internal/hubclient", clickhouse},
		why:   "a program is signals, an exit code and one call; its tests run it, kill it and count what it kept",
	},
	{
		folder: "cmd/landfall-agent", imports: []string{"agent"}, process: true,
		why: "a program is signals, an exit code and one call; everything else must be testable without a process",
	},
	{
		folder: "cmd/landfall-engine", imports: []string{"internal/chdb"}, process: true,
		tests: []string{"hub/engine/...", clickhouse},
		why:   "the one program that loads libchdb, so that a crash of the library is not a crash of the hub",
	},

	{
		folder: "internal/cli",
		imports: []string{
			"internal/hubclient", "internal/gitrepo", "scheduler", "scheduler/...", "dashboards",
			"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", yaml,
		},
		tests: []string{"hub/...", "internal/gitrepo/gittest"},
		why:   "the command line is a client of the public API; only its tests may stand up a hub",
	},
	{
		folder: "internal/hubclient", imports: []string{compress}, tests: []string{"hub/..."},
		why: "the API's client is shared by agent and command line: whatever it imports, the agent's memory pays for",
	},
	{
		folder: "internal/chdb", imports: []string{purego}, tests: []string{clickhouse, "github.com/ClickHouse/ch-go"},
		why: "libchdb behind ClickHouse's HTTP interface and nothing else; purego makes a dynamic binary, so it stays here",
	},
	{folder: "internal/command", imports: []string{"internal/settings"}, why: "one named job: hub and agent are run, checked and asked for their version the same way"},
	{folder: "internal/httpserver", why: "one named job; listeners and shutdown need no library"},
	{folder: "internal/lifecycle", why: "one named job: hub and agent start and stop their parts the same way"},
	{folder: "internal/settings", imports: []string{yaml}, why: "one named job: hub and agent read file, environment and flags the same way"},
	{
		folder: "internal/gitpack", imports: []string{"github.com/go-git/go-git/v5"},
		why: "one named job: packs are taken and joined in bounded memory; what a pack looks like is go-git's",
	},
	{
		folder: "internal/gitlink", pure: true,
		why: "where a provider's web pages are is a function of an address: whoever shows a commit can link it",
	},
	{
		folder: "internal/gitrepo", imports: []string{"internal/gitpack", "github.com/go-git/go-git/v5", "github.com/go-git/go-billy/v5", "golang.org/x/crypto"},
		tests: []string{"internal/gitrepo/gittest"},
		why: "one named job, one library: Git is spoken here only; go-billy is go-git's word for a folder, and x/crypto's SSH " +
			"is what go-git wraps in a client that cannot be interrupted during the handshake",
	},
	{
		folder: "internal/gitrepo/gittest", testSupport: true,
		why: "gives tests a real Git server, run by Git's own program, and is linked into no program",
	},
	{folder: "internal/polltest", testSupport: true, why: "lets tests wait, and is linked into no program"},
	{
		folder: "internal/forge", imports: []string{"github.com/google/go-github", "code.gitea.io/sdk/gitea"},
		why: "one named job: forges are spoken to here only, one client library per provider",
	},
	{
		folder: "internal/lease", imports: []string{"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api"},
		why: "one named job: the hub's leader election in a cluster",
	},

	{folder: "schema", pure: true, why: "the vocabulary is spoken by all, so it depends on nothing"},
	{
		folder: "schema/clickhouse", pure: true, imports: []string{"io/fs"}, // over what it embeds
		why: "the DDL and its names are shared with the dashboards, which must not drag a database driver along",
	},

	{
		folder: "agent", imports: append([]string{"agent/...", "k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/klog/v2"}, wiring...),
		tests: []string{"internal/gitrepo/gittest"},
		why: "the agent reports facts; it knows neither hub nor scheduler nor dashboards, only the schema they share; " +
			"client-go is for the address of the API server, not for objects",
	},
	{
		folder: "agent/watch", imports: []string{"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/utils", "github.com/go-logr/logr"},
		tests: []string{"agent/flux"}, // what a reader leaves of an object is what memory is measured with
		why:   "reflectors are the only code that talks to the API server; their lines go to our logger by way of logr",
	},
	{
		folder: "agent/object", pure: true, imports: []string{"k8s.io/apimachinery"},
		why: "how every reader takes a foreign object apart: a field of a bad type is an error, never a zero value",
	},
	{
		folder: "agent/flux", pure: true, imports: []string{"agent/object", "k8s.io/apimachinery", "github.com/fluxcd"},
		why: "reading a status is a pure function of the object: every row of the table is a test without a cluster",
	},
	{
		folder: "agent/argocd", pure: true, imports: []string{"agent/object", "k8s.io/apimachinery"},
		why: "reading a status is a pure function; Argo CD's own types cost three times the agent's memory budget",
	},
	{folder: "agent/host", imports: []string{"internal/gitrepo"}, tests: []string{"internal/gitrepo/gittest"}, why: "a host follows a folder of a repository and reports"},
	{folder: "agent/outbox", imports: []string{"internal/hubclient"}, why: "what waits to be sent knows only the wire"},

	{
		folder: "hub", imports: append([]string{"hub/...", "scheduler"}, wiring...),
		tests: []string{clickhouse, compress, "internal/gitrepo/gittest"},
		why:   "wiring: the only place that knows all parts of the hub",
	},
	{
		folder:  "hub/api",
		imports: []string{chi, compress, "github.com/go-json-experiment/json", "k8s.io/apimachinery/pkg/labels"},
		tests:   []string{"hub/...", "github.com/getkin/kin-openapi", clickhouse},
		why: "routes declare the narrow interfaces they need, so that HTTP can be tested without a database; " +
			"go-json-experiment names the JSON pointer of a bad field, which encoding/json cannot; label selectors are Kubernetes' own",
	},
	{folder: "hub/auth", imports: []string{"hub/record"}, tests: []string{"hub/..."}, why: "tokens and roles know neither HTTP nor the database"},
	{
		folder: "hub/record", pure: true, imports: []string{"hub/compliance", "hub/fold", "hub/names"},
		why: "what passes between the store and those who ask it, in the hub's own words: nobody else needs a database driver",
	},
	{
		folder: "hub/fleet", imports: []string{"hub/fold", "hub/record"}, tests: []string{"hub/..."},
		why: "who is registered and who is silent; where that is kept is an interface",
	},
	{
		folder: "hub/overview", imports: []string{"hub/compliance", "hub/fleet", "hub/names", "hub/record"}, tests: []string{"hub/...", "internal/gitlink"},
		why: "rows and groups of the store get their names here; counting is the store's work, meaning is hub/names'",
	},
	{
		folder: "hub/gate", imports: []string{"hub/compliance", "hub/fleet", "hub/fold", "hub/record"}, tests: []string{"hub/..."},
		why: "gathers what a verdict needs and wakes those who wait; judging is pure and elsewhere, storing is an interface",
	},
	{
		folder: "hub/landing", imports: []string{"hub/fold", "hub/record"}, tests: []string{"hub/..."},
		why: "what is known of an endpoint, from memory or from the store, which is an interface",
	},
	{
		folder: "hub/ingest", imports: []string{"hub/fold", "hub/fleet"}, tests: []string{"hub/..."},
		why: "group commit is about ordering and waiting; where the rows go is an interface",
	},
	{
		folder: "hub/store", imports: []string{"hub/fold", "hub/compliance", "hub/names", "hub/record", "schema/clickhouse", clickhouse}, tests: []string{"hub/..."},
		why: "the only ClickHouse code: SQL in one place can be read, reviewed and measured in one place",
	},
	{
		folder: "hub/engine", tests: []string{"hub/engine/...", clickhouse},
		why: "supervising a child process needs no library and must not depend on what is stored in it",
	},
	{
		folder: "hub/engine/enginetest", imports: []string{"hub/engine", clickhouse}, process: true, testSupport: true,
		tests: []string{"github.com/google/uuid"}, // what the driver makes of a UUID column
		why: "gives tests a running engine, and the conformance suite that any ClickHouse must pass; it reads the " +
			"environment to find a server or the library, and is linked into no program",
	},
	{
		folder: "hub/compliance", pure: true,
		why: "a false green is the worst bug: the verdict is a pure function, so that every row of its table is a test",
	},
	{
		folder: "hub/fold", pure: true, imports: []string{"hub/compliance"},
		why: "a report changes state as a pure function, so that one sent again changes the same things the same way",
	},
	{
		folder: "hub/gitops", imports: []string{"internal/gitrepo", "hub/compliance", yaml},
		tests: []string{"hub/...", "internal/gitrepo/gittest"},
		why: "mirrors turn Git into lineage and changes, what they mean is for others to say; yaml is for " +
			"kustomization files, which say whether a folder depends on another",
	},
	{
		folder: "hub/names", pure: true,
		why: "what a commit means is a function of what is known: every table that people read gets its names from one place",
	},
	{
		folder: "hub/descriptor", pure: true, imports: []string{"hub/names", "scheduler/controlplane", yaml},
		why: "documents become names as a pure function, whether they come from Git or by HTTP; yaml keeps the lines of what is wrong",
	},
	{
		folder: "hub/catalog", imports: []string{"internal/gitrepo", "hub/descriptor", "hub/gitops", "hub/names", "hub/record"},
		tests: []string{"hub/...", "internal/gitrepo/gittest"},
		why:   "follows histories and keeps what they say; where that is kept is an interface",
	},
	{
		folder: "hub/control", imports: []string{"scheduler", "scheduler/...", "internal/gitrepo", "internal/forge", "hub/record"},
		tests: []string{"hub/...", "internal/gitrepo/gittest"},
		why:   "runs the scheduler for the hub: the one bridge between the two",
	},
	{folder: "hub/promotion", tests: []string{"hub/..."}, why: "a state machine over verdicts; it needs only their words"},

	{
		folder: "scheduler", pure: true, imports: []string{"scheduler/..."},
		// Ready templates, beside their kinds' schemas; sprig is in the benchmark's yardstick.
		tests: []string{yaml, "github.com/Masterminds/sprig/v3", "github.com/santhosh-tekuri/jsonschema/v6", "k8s.io/api", "sigs.k8s.io/yaml"},
		why:   "planning is a library that runs without a hub, and a function of its model",
	},
	{
		folder: "scheduler/controlplane", pure: true, imports: []string{yaml, "k8s.io/apimachinery"},
		why: "documents become a typed model here, with file and line for every complaint: hence a YAML library with lines, " +
			"and Kubernetes' own label selectors and names",
	},
	{folder: "scheduler/match", pure: true, imports: []string{"scheduler/controlplane"}, why: "selection with reasons is a pure function"},
	{
		folder: "scheduler/compose", pure: true,
		imports: []string{"scheduler/controlplane", "scheduler/match", "github.com/santhosh-tekuri/jsonschema/v6"},
		why: "config with provenance is a pure function; JSON Schema is here and not in render, because what is checked are " +
			"values, whose giver is known here, and not files",
	},
	{
		folder: "scheduler/render", pure: true, imports: []string{"scheduler/controlplane", "github.com/Masterminds/sprig/v3", yaml},
		why: "templates to files is a pure function: the same plan renders the same tree; yaml is for toYaml, and to see that output parses",
	},
	{
		folder: "scheduler/source", imports: []string{"internal/gitrepo", "scheduler/controlplane"}, tests: []string{"internal/gitrepo/gittest"},
		why: "the only part of the scheduler that reads folders and repositories: hub and command line read them the same way",
	},
	{
		folder: "scheduler/publish", imports: []string{"internal/gitrepo", "internal/forge", "scheduler"}, tests: []string{"internal/gitrepo/gittest", "scheduler/..."},
		why: "the only part of the scheduler that writes",
	},

	{
		folder: "dashboards", imports: []string{"schema/clickhouse", "github.com/grafana/grafana-foundation-sdk/go"},
		why: "panels share column names with the store through schema/clickhouse and know nothing else of the hub",
	},

	{
		folder: "examples/...", imports: []string{"internal/hubclient", yaml}, process: true,
		why: "an example is a user: it speaks the public API",
	},
	{
		folder: "test/...", imports: []string{"any"}, process: true, testSupport: true,
		why: "tests, generators and tools may look at everything and are linked into nothing",
	},
}

// A fence names something that only a few folders may import, whatever their
// rows say: it guards against a row that is widened without a thought.
type fence struct {
	// path is a folder of this module or a library's module path.
	path string
	only []string
	// tests may import it in _test.go files besides.
	tests []string
	why   string
}

var fences = []fence{
	{
		path: clickhouse, only: []string{"hub/store", "hub/engine/enginetest", "test/..."},
		tests: []string{"hub/...", "internal/chdb", "cmd/landfall-hub", "cmd/landfall-engine"},
		why:   "SQL is written in hub/store and nowhere else; a second place is a second dialect",
	},
	{
		path: purego, only: []string{"internal/chdb"},
		why: "whatever links purego is a dynamic binary that shares a process with libchdb's signal handlers",
	},
	{
		path: "internal/chdb", only: []string{"cmd/landfall-engine"},
		why: "a crash of libchdb must stay a crash of the engine",
	},
	{
		path: "hub", only: []string{"cmd/landfall-hub", "test/..."}, tests: []string{"internal/cli", "internal/hubclient", "hub/..."},
		why: "only the hub's program wires the hub; everyone else is its client",
	},
}

// A wall stands between two parts, in both code and tests, however many
// packages lie between: from never reaches to.
type wall struct{ from, to, why string }

var walls = []wall{
	{"agent/...", "hub/...", "agent and hub are released apart; only the schema and the wire join them"},
	{"agent/...", "scheduler/...", "the agent reports what is; what should be is not its business"},
	{"agent/...", "dashboards/...", "the agent knows nothing of how its facts are shown"},
	{"scheduler/...", "hub/...", "planning is a library that runs without a hub"},
	{"scheduler/...", "agent/...", "planning reads Git, never a cluster"},
	{"scheduler/...", "dashboards/...", "planning knows nothing of how its work is shown"},
	{"dashboards/...", "hub/...", "dashboards share names through schema/clickhouse, not code"},
	{"dashboards/...", "agent/...", "dashboards read tables, not agents"},
	{"dashboards/...", "scheduler/...", "dashboards read tables, not plans"},
	{"hub/...", "agent/...", "the hub hears agents over the wire only"},
	{"hub/...", "dashboards/...", "generated dashboards are data to the hub"},
}

// static programs must not link a library that needs the dynamic loader, also
// not through a library of a library.
var static = []struct{ program, mustNotLink, why string }{
	{"cmd/landfall-hub", purego, "the hub is a static binary"},
	{"cmd/landfall", purego, "the command line is a static binary"},
	{"cmd/landfall-agent", purego, "the agent is a static binary"},
	{"cmd/landfall", clickhouse, "the command line is a client of the hub, not of its database"},
	{"cmd/landfall-agent", clickhouse, "the agent is a client of the hub, not of its database"},
}
