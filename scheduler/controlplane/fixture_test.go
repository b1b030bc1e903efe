package controlplane

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample reads a folder below ../testdata, which holds the control plane of
// Kalypso's tutorial as it is.
func sample(t *testing.T, folder string) []File {
	t.Helper()
	root := filepath.Join("..", "testdata", folder)
	var files []File
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		files = append(files, File{Path: filepath.ToSlash(rel), Text: text})
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("reading the sample %s: %d files, %v", root, len(files), err)
	}
	return files
}

// file is a file of a test.
func file(path string, lines ...string) File {
	return File{Path: path, Text: []byte(strings.Join(lines, "\n") + "\n")}
}

// clusterType is the least that a cluster type needs.
func clusterType(name string) string {
	return "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: " + name + ", labels: {size: large}}\n" +
		"spec: {reconciler: r, namespaceService: n}\n"
}

func messages(problems []Problem) []string {
	all := make([]string, len(problems))
	for i, p := range problems {
		all[i] = p.Error()
	}
	return all
}
