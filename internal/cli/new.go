package cli

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"text/template"

	"github.com/spf13/cobra"
)

//go:embed newfiles
var newFiles embed.FS

// newKinds are what landfall new writes, with what each is.
var newKinds = []struct{ name, short string }{
	{"registration", "a WorkloadRegistration: where a team describes its workloads"},
	{"policy", "a SchedulingPolicy: which deployment targets go to which cluster types"},
	{"cluster-type", "a ClusterType: a group of like clusters"},
	{"environment", "an Environment: a place in the promotion chain"},
}

func (a *app) newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Write a commented file for a control plane",
		Args:  cobra.NoArgs,
		RunE:  needsCommand,
	}
	for _, kind := range newKinds {
		var out string
		c := &cobra.Command{
			Use:     kind.name + " NAME",
			Short:   "Write " + kind.short,
			Example: fmt.Sprintf("  landfall new %[1]s my-%[1]s > my-%[1]s.yaml", kind.name),
			Args:    cobra.ExactArgs(1),
			RunE:    func(_ *cobra.Command, args []string) error { return a.newFile(kind.name, args[0], out) },
		}
		c.Flags().StringVar(&out, "out", "", "write to this `FILE`, which must not be there yet, instead of the standard output")
		cmd.AddCommand(c)
	}
	return cmd
}

func (a *app) newFile(kind, name, out string) error {
	if !isName(name) {
		return usagef("%q is no name: it is made of small letters, digits, dots and dashes, and begins and ends with a letter or digit", name)
	}
	text, err := template.ParseFS(newFiles, "newfiles/"+kind+".yaml")
	if err != nil {
		return fmt.Errorf("reading the file for a new %s: %w", kind, err)
	}
	var b bytes.Buffer
	if err := text.Execute(&b, map[string]string{"Name": name}); err != nil {
		return fmt.Errorf("writing the file for a new %s: %w", kind, err)
	}
	if out == "" {
		_, err := a.streams.Out.Write(b.Bytes())
		return err
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s is there already; nothing was written", out)
	}
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("writing the new %s: %w", kind, err)}
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// isName reports whether a text may name a Kubernetes object.
func isName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (c != '-' && c != '.' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}
