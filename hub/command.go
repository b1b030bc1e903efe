package hub

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/landfall-hub/landfall/hub/engine"
	"github.com/landfall-hub/landfall/internal/command"
	"github.com/landfall-hub/landfall/schema"
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
type Program command.Program

// Main runs a command and returns the exit code: 0 done, 1 failed, 2 usage.
func (p Program) Main(ctx context.Context) int {
	return command.Service[Config]{
		Name: "landfall-hub", Run: "serve", Usage: usage, Settings: configuration, Serve: runService, Check: checkSettings,
	}.Main(ctx, command.Program(p))
}

func runService(ctx context.Context, p command.Program, config Config) error {
	log := slog.New(slog.NewTextHandler(p.Stderr, nil))
	h, err := New(Options{Config: config, Version: p.Version, Log: log, EngineLibrary: p.Env("LANDFALL_CHDB_LIB")})
	if err != nil {
		return err
	}
	return h.Run(ctx)
}

// checkSettings reads the files that the settings name.
func checkSettings(_ command.Program, config Config) (string, error) {
	if file := config.ClickHouse.ReaderPasswordFile; file != "" {
		if _, _, err := engine.ReadPassword(file); err != nil {
			return "", fmt.Errorf("clickhouse.reader_password_file: %w", err)
		}
	}
	if _, err := config.Webhooks.check(); err != nil {
		return "", err
	}
	where := "the embedded ClickHouse in " + config.DataDir
	if config.ClickHouse.URL != "" {
		server, _, _ := strings.Cut(schema.StripUserInfo(config.ClickHouse.URL), "?") // a password may stand there too
		where = "the ClickHouse server at " + server
	}
	return fmt.Sprintf("the settings are good: serve on %s with %s", config.Listen, where), nil
}
