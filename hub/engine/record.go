package engine

import (
	"fmt"
	"log/slog"
	"sort"
)

// readRecord takes a record of slog's JSON handler apart again. Its time is
// dropped: the record is passed on at once.
func readRecord(record map[string]any) (slog.Level, string, []slog.Attr) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(fmt.Sprint(record[slog.LevelKey]))); err != nil {
		level = slog.LevelInfo
	}
	message := fmt.Sprint(record[slog.MessageKey])
	var attrs []slog.Attr
	for key, value := range record {
		switch key {
		case slog.LevelKey, slog.MessageKey, slog.TimeKey:
		default:
			attrs = append(attrs, slog.Any(key, value))
		}
	}
	sort.Slice(attrs, func(i, j int) bool { return attrs[i].Key < attrs[j].Key })
	return level, message, attrs
}
