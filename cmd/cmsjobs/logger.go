package main

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// logger writes to standard error: for people where one watches, as JSON for
// collectors elsewhere.
func (a *app) logger(c config.Log) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Level)) != nil {
		level = slog.LevelInfo // the configuration was checked; this is no way out
	}
	switch {
	case c.Format == "json", c.Format == "auto" && !a.attended:
		return slog.New(redact.Handler(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level})))
	}
	return slog.New(redact.Handler(tint.NewTextHandler(a.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !a.attended})))
}
