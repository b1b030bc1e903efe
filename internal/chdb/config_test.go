package chdb

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigIsXML writes the settings into a folder with an awkward name and
// reads them as XML.
func TestConfigIsXML(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a <b> & 'c'")
	opts := Options{Memory: 1 << 30, Reader: &ReaderAccess{Database: "landfall", Tables: []string{"t", "u"}}}
	config, err := writeConfig(folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		config:                             filepath.Join(folder, "users.xml"),
		filepath.Join(folder, "users.xml"): "GRANT SELECT ON landfall.u",
	} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		text, found := xml.NewDecoder(file), false
		for {
			token, err := text.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if data, ok := token.(xml.CharData); ok && strings.Contains(string(data), want) {
				found = true
			}
		}
		if !found {
			t.Errorf("%s does not hold %q", path, want)
		}
	}
}

func TestReaderAccessIsChecked(t *testing.T) {
	for name, access := range map[string]ReaderAccess{
		"no database": {Tables: []string{"t"}},
		"no table":    {Database: "landfall"},
		"odd table":   {Database: "landfall", Tables: []string{"t, vault.s"}},
		"odd name":    {Database: "*", Tables: []string{"t"}},
		"star":        {Database: "landfall", Tables: []string{"*"}},
	} {
		if err := access.validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
