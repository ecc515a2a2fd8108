package main

import (
	"log/slog"
	"math"
	"strings"
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
		return slog.New(redact.Handler(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: attribute})))
	}
	plain := !a.attended || config.NoColor()
	return slog.New(redact.Handler(tint.NewTextHandler(a.err,
		&tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: plain, ReplaceAttr: attribute})))
}

// attribute writes durations in milliseconds, with the unit in the key, and
// keeps every value on one line.
func attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		ms := float64(a.Value.Duration()) / float64(time.Millisecond)
		return slog.Float64(a.Key+"_ms", math.Round(ms*1000)/1000)
	case slog.KindString:
		return slog.String(a.Key, oneLine(a.Value.String()))
	case slog.KindAny:
		if err, is := a.Value.Any().(error); is && err != nil {
			return slog.String(a.Key, oneLine(err.Error()))
		}
	}
	return a
}

// oneLine joins the lines of a text, as of several errors, by semicolons.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
