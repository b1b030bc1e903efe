package chdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// isHello recognizes the first query of clickhouse-go, by which it learns how
// to decode everything else.
func isHello(sql string) bool {
	return sql == "SELECT displayName(), version(), revision(), timezone()"
}

// hello answers it with protocol revision 0: from then on the client reads
// plain Native, which is all that the library writes. The answer itself is
// decoded at revision 54460, so it has the block's description in front and a
// byte for the serialization kind in every column.
func (s *session) hello() ([]byte, error) {
	text, err := s.conn.run("SELECT displayName(), version(), timezone()", "TabSeparated")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimSuffix(string(text), "\n"), "\t")
	if len(fields) != 3 {
		return nil, fmt.Errorf("describing the engine: %w", errors.New("three fields were expected"))
	}
	return encodeHello(fields[0], fields[1], fields[2]), nil
}

func encodeHello(name, version, zone string) []byte {
	// Field 1: no overflow row; field 2: bucket -1; 0 ends the description.
	block := []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}
	block = append(block, 4, 1) // columns, rows
	block = appendText(appendColumn(block, "displayName()", "String"), name)
	block = appendText(appendColumn(block, "version()", "String"), version)
	block = binary.LittleEndian.AppendUint32(appendColumn(block, "revision()", "UInt32"), 0)
	return appendText(appendColumn(block, "timezone()", "String"), zone)
}

func appendColumn(block []byte, name, kind string) []byte {
	return append(appendText(appendText(block, name), kind), 0)
}

func appendText(block []byte, text string) []byte {
	return append(binary.AppendUvarint(block, uint64(len(text))), text...)
}
