// Package cli is the landfall command line: a client of the hub's public API
// for people and pipelines. Each command has a file of its own; what it reads
// and writes is injected, so that every command runs in a test as it runs in a
// shell.
//
// Results go to the standard output, words about them to the standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/landfall-hub/landfall/internal/hubclient"
)

// Streams are the standard streams of the program, and what is known of them.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal say which of them is a terminal.
	InTerminal, OutTerminal, ErrTerminal bool
	// Width returns the terminal's present width in columns, or zero when that
	// is not known.
	Width func() int
}

// FileStreams returns the streams over three open files.
func FileStreams(in, out, err *os.File) Streams {
	s := Streams{
		In: in, Out: out, Err: err,
		InTerminal:  term.IsTerminal(int(in.Fd())),
		OutTerminal: term.IsTerminal(int(out.Fd())),
		ErrTerminal: term.IsTerminal(int(err.Fd())),
	}
	s.Width = func() int {
		for _, f := range []*os.File{err, out} {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil {
				return w
			}
		}
		return 0
	}
	return s
}

// Main runs the command line with args, which do not hold the program's name,
// and returns the exit code. version is what the build was told, "" for nothing;
// env looks up an environment variable.
func Main(ctx context.Context, version string, args []string, env func(string) string, streams Streams) int {
	a := &app{version: version, env: env, streams: streams, now: time.Now}
	return a.run(ctx, args)
}

// app is one run of the program.
type app struct {
	version string // of the build; "" where it says none
	env     func(string) string
	streams Streams
	// now is the clock; http carries the requests, nil is the standard way.
	now  func() time.Time
	http *http.Client

	global globals
	// started is set when the command line was understood: what fails before is
	// a usage error.
	started bool
}

// globals are the flags of every command.
type globals struct {
	hub       string
	token     string
	tokenFile string
	output    string
}

const defaultHub = "http://127.0.0.1:8080"

func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for os.Args
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if !a.started {
		code = exitUsage
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(a.streams.Err, "landfall: %s\n", printable(text))
	}
	if code == exitUsage && hubclient.Status(err) == 0 {
		fmt.Fprintf(a.streams.Err, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return code
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "landfall",
		Short: "Ask a Landfall hub what has landed where",
		Long: `Ask a Landfall hub what has landed where, and wait until a commit has.

Exit codes:
  0  done, or the gate passed
  1  failed
  2  wrong usage or bad input
  3  still waiting when the time was over
  4  no answer was had, or access was refused

Environment:
  LANDFALL_HUB         the hub's URL, as --hub
  LANDFALL_TOKEN       the token itself
  LANDFALL_TOKEN_FILE  a file that holds the token, as --token-file
  LANDFALL_OUTPUT      the output format, as --output
  NO_COLOR             no colours when set`,
		Example: `  landfall gate --repo https://git.example/org/app-gitops --ref dev --commit "$(git rev-parse HEAD)"
  landfall status --environment dev --status failure
  landfall history --cluster drone-07 --from 24h
  landfall compare
  landfall clusters`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		// Without a command there is nothing to succeed at: a pipeline whose
		// variable was empty must not turn green.
		RunE: needsCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.resolveGlobals(cmd); err != nil {
				return err
			}
			a.started = true
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.global.hub, "hub", defaultHub, "the hub's `URL`")
	flags.StringVar(&a.global.tokenFile, "token-file", "", "a `FILE` that holds the token")
	flags.StringVarP(&a.global.output, "output", "o", "table", "output `FORMAT`: table, json or yaml")
	completeBy(root, "output", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return formats(cmd), cobra.ShellCompDirectiveNoFileComp
	})

	root.AddCommand(a.gateCommand(), a.statusCommand(), a.historyCommand(), a.compareCommand(), a.driftCommand(), a.doraCommand(),
		a.clustersCommand(), a.scheduleCommand(), a.explainCommand(), a.validateCommand(), a.newCommand(), a.tokensCommand(), a.versionCommand())
	return root
}

// needsCommand is what a command does that only holds others.
func needsCommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("say which command: %s", strings.Join(names, ", "))
}

// resolveGlobals fills flags that were not given from the environment.
func (a *app) resolveGlobals(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if v := a.env("LANDFALL_HUB"); v != "" && !flags.Changed("hub") {
		a.global.hub = v
	}
	if v := a.env("LANDFALL_OUTPUT"); v != "" && !flags.Changed("output") {
		a.global.output = v
	}
	if known := formats(cmd); !slices.Contains(known, a.global.output) {
		return usagef("the output format is %s, not %q", orList(known), a.global.output)
	}
	if flags.Changed("token-file") {
		if a.global.tokenFile == "" {
			return usagef("--token-file is empty; name the file, or leave it out and set LANDFALL_TOKEN")
		}
		return nil
	}
	a.global.token, a.global.tokenFile = a.env("LANDFALL_TOKEN"), a.env("LANDFALL_TOKEN_FILE")
	if a.global.token != "" && a.global.tokenFile != "" {
		return usagef("LANDFALL_TOKEN and LANDFALL_TOKEN_FILE are both set; unset one")
	}
	return nil
}

// client returns the client of the hub that the globals name.
func (a *app) client() (*hubclient.Client, error) {
	c, err := hubclient.New(hubclient.Options{
		URL: a.global.hub, Token: strings.TrimSpace(a.global.token), TokenFile: a.global.tokenFile,
		UserAgent: a.userAgent(), HTTPClient: a.http,
	})
	if errors.Is(err, hubclient.ErrOptions) {
		return nil, usagef("%w (flags --hub and --token-file, or LANDFALL_HUB and LANDFALL_TOKEN)", err)
	}
	return c, err
}

// formats are the output formats of a command.
func formats(cmd *cobra.Command) []string {
	all := []string{"table", "json", "yaml"}
	if _, ok := cmd.Annotations[alsoCSV]; ok {
		all = append(all, formatCSV)
	}
	return all
}

// complete offers fixed values for a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func completeBy(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is defined beside the call
	}
}
