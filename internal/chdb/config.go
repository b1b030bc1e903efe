package chdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The library gives every connection the rights of the user `default` and
// offers no other. Here that user has no rights of its own but two roles: admin
// may do everything and is what the hub works with; reader may read what it is
// told. A session for a reader sets the role reader and never runs a statement
// that could set another.
const (
	adminRole  = "admin"
	readerRole = "reader"
)

// ReaderAccess is what readers from outside may see.
type ReaderAccess struct {
	// Database is the one that bare names are looked up in. Required.
	Database string
	// Tables are the tables and views of that database that may be read; no
	// other can be. At least one.
	Tables []string
}

func (a *ReaderAccess) validate() error {
	if !isName(a.Database) {
		return fmt.Errorf("%q is no name for the readers' database", a.Database)
	}
	if len(a.Tables) == 0 {
		return errors.New("readers need at least one table")
	}
	for _, table := range a.Tables {
		if !isName(table) {
			return fmt.Errorf("%q is no name for a readers' table", table)
		}
	}
	return nil
}

// writeConfig writes ClickHouse's own settings into the folder and returns the
// path of the main file. Naming one also keeps the library from looking for a
// config.xml in the current folder and in the home folder.
func writeConfig(folder string, opts Options) (string, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", fmt.Errorf("making the folder for ClickHouse's settings %s: %w", folder, err)
	}
	users := filepath.Join(folder, "users.xml")
	config := filepath.Join(folder, "config.xml")
	for path, text := range map[string]string{users: usersXML(opts.Reader), config: configXML(users, opts.Memory)} {
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			return "", fmt.Errorf("writing ClickHouse's settings: %w", err)
		}
	}
	return config, nil
}

func configXML(users string, memory uint64) string {
	// The hub lives on the same machine and needs memory too.
	limit := "    <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>\n"
	if memory != 0 {
		limit = fmt.Sprintf("    <max_server_memory_usage>%d</max_server_memory_usage>\n", memory)
	}
	return "<!-- Written by landfall-engine at every start. -->\n<clickhouse>\n" +
		"    <users_config>" + xmlEscaper.Replace(users) + "</users_config>\n" + limit + mergeTree + "</clickhouse>\n"
}

// mergeTree makes writing cheaper than ClickHouse's own settings do. An insert
// writes one file for all columns, however large it is: with a file for each, one
// as wide as the hub's costs up to four times as much; merges make large parts
// wide. Parts are merged when about ten are there, not five, so that a row is
// written again less often; look-ups take no longer.
const mergeTree = `    <merge_tree>
        <min_level_for_wide_part>1</min_level_for_wide_part>
        <merge_selector_base>10</merge_selector_base>
    </merge_tree>
`

func usersXML(access *ReaderAccess) string {
	var grants strings.Builder
	withheld := ""
	if access != nil {
		// The check of readers' statements knows the functions that there are at
		// the start; a later one could have any name and do anything.
		withheld = "<query>REVOKE CREATE FUNCTION ON *.*</query>"
		for _, table := range access.Tables {
			fmt.Fprintf(&grants, "<query>GRANT SELECT ON %s.%s</query>", access.Database, table)
		}
	}
	return `<!-- Written by landfall-engine at every start. -->
<clickhouse>
    <profiles><default></default></profiles>
    <quotas><default></default></quotas>
    <roles>
        <` + adminRole + `><grants><query>GRANT ALL ON *.* WITH GRANT OPTION</query>` + withheld + `</grants></` + adminRole + `>
        <` + readerRole + `><grants>` + grants.String() + `</grants></` + readerRole + `>
    </roles>
    <users>
        <default>
            <password></password>
            <networks><ip>::/0</ip></networks>
            <profile>default</profile>
            <quota>default</quota>
            <grants><query>GRANT ` + adminRole + `, ` + readerRole + `</query></grants>
        </default>
    </users>
</clickhouse>
`
}

var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")
