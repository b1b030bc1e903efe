package hub

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/schema"
)

// Exit codes of landfall-hub.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `landfall-hub stores what agents report and says where a commit has landed.

  landfall-hub serve [flags]          run the hub
  landfall-hub config check [flags]   read the settings, say what is wrong, run nothing
  landfall-hub version

Flags of serve and config check; each is also LANDFALL_… in the environment:
  --config FILE                 settings (YAML)
  --listen HOST:PORT            address of the HTTP API (127.0.0.1:8080)
  --data-dir DIR                folder of the embedded ClickHouse (./data)
  --clickhouse-url URL          a ClickHouse server instead of the embedded one
  --clickhouse-cluster NAME     the ClickHouse cluster behind that server
`

// Program is the command line around the hub, with what only a main function
// may read.
type Program struct {
	Args           []string
	Env            func(string) string
	Stdout, Stderr io.Writer
	Version        string
}

// Main runs a command and returns the exit code: 0 done, 1 failed, 2 usage.
func (p Program) Main(ctx context.Context) int {
	command, rest := "", []string(nil)
	if len(p.Args) > 0 {
		command, rest = p.Args[0], p.Args[1:]
	}
	switch command {
	case "serve":
		return p.serve(ctx, rest)
	case "config":
		if len(rest) > 0 && rest[0] == "check" {
			return p.check(rest[1:])
		}
	case "version", "--version":
		fmt.Fprintln(p.Stdout, p.Version)
		return exitDone
	case "help", "-h", "--help":
		fmt.Fprint(p.Stdout, usage)
		return exitDone
	}
	fmt.Fprint(p.Stderr, usage)
	return exitUsage
}

func (p Program) serve(ctx context.Context, args []string) int {
	config, code, ok := p.load("serve", args)
	if !ok {
		return code
	}
	log := slog.New(slog.NewTextHandler(p.Stderr, nil))
	h, err := New(Options{Config: config, Version: p.Version, Log: log, EngineLibrary: p.Env("LANDFALL_CHDB_LIB")})
	if err != nil {
		return p.fail(exitFailed, err)
	}
	for _, note := range notes(config) {
		log.Warn("a setting has no effect", "note", note)
	}
	if err := h.Run(ctx); err != nil {
		return p.fail(exitFailed, err)
	}
	return exitDone
}

func (p Program) check(args []string) int {
	config, code, ok := p.load("config check", args)
	if !ok {
		return code
	}
	if file := config.ClickHouse.ReaderPasswordFile; file != "" {
		if _, _, err := engine.ReadPassword(file); err != nil {
			return p.fail(exitUsage, fmt.Errorf("clickhouse.reader_password_file: %w", err))
		}
	}
	if err := config.Webhooks.check(); err != nil {
		return p.fail(exitUsage, err)
	}
	for _, note := range notes(config) {
		fmt.Fprintln(p.Stdout, "note: "+note)
	}
	where := "the embedded ClickHouse in " + config.DataDir
	if config.ClickHouse.URL != "" {
		server, _, _ := strings.Cut(schema.StripUserInfo(config.ClickHouse.URL), "?") // a password may stand there too
		where = "the ClickHouse server at " + server
	}
	fmt.Fprintf(p.Stdout, "the settings are good: serve on %s with %s\n", config.Listen, where)
	return exitDone
}

// notes say what settings ask for that this version does not do.
func notes(c Config) []string {
	var notes []string
	if len(c.ControlPlanes) > 0 {
		notes = append(notes, "control_planes are read but not scheduled by this version")
	}
	return notes
}

// load reads the settings; ok is false where the program is to end with code.
func (p Program) load(command string, args []string) (config Config, code int, ok bool) {
	config, err := loadConfig("landfall-hub "+command, args, p.Env)
	switch {
	case err == nil:
		return config, exitDone, true
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.Stdout, usage)
		return config, exitDone, false
	}
	return config, p.fail(exitUsage, err), false
}

func (p Program) fail(code int, err error) int {
	fmt.Fprintln(p.Stderr, "landfall-hub:", err)
	return code
}
