package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what `landfall version` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildVersion returns the version that the build was told, or else what the build
// information says.
func buildVersion(told string) versionInfo {
	v := versionInfo{Version: told, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	switch {
	case v.Version != "":
	case ok && info.Main.Version != "" && info.Main.Version != "(devel)":
		v.Version = info.Main.Version
	default:
		v.Version = "devel"
	}
	return v
}

func (a *app) userAgent() string {
	v := buildVersion(a.version)
	return "landfall/" + v.Version + " (" + v.Platform + ")"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion(a.version)
			return a.print(v, func(w io.Writer) error {
				commit := ""
				if v.Commit != "" {
					commit = "commit " + shortCommit(v.Commit) + ", "
				}
				_, err := fmt.Fprintf(w, "landfall %s (%s%s, %s)\n", v.Version, commit, v.Go, v.Platform)
				return err
			})
		},
	}
}

// shortCommit shortens a commit id for tables.
func shortCommit(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
