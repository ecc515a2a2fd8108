package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
)

// Every line of the log is one line, and its durations name their unit.
func TestLogLinesAreWholeAndNameTheirUnits(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		a := &Process{Err: &out, StderrIsTTY: true}
		log := a.Logger(config.Log{Level: "info", Format: format})
		log.Error("it failed", "error", errors.Join(errors.New("one"), errors.New("two\n  three")), "took",
			1500*time.Microsecond, "text", "a\r\nb")
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("%s: %d lines: %q", format, n, out.String())
		}
		for _, want := range []string{"one; two; three", "took_ms", "1.5", "a; b"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %q", format, want, out.String())
			}
		}
		if format == "json" {
			var line struct {
				Took float64 `json:"took_ms"`
			}
			if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Took != 1.5 {
				t.Errorf("%+v %v", line, err)
			}
		}
	}
}

// A terminal gets colours, unless its user wants none (no-color.org).
func TestNoColorIsRespected(t *testing.T) {
	for _, c := range []struct {
		value   string
		colours bool
	}{{"", true}, {"1", false}} {
		t.Setenv("NO_COLOR", c.value)
		var out bytes.Buffer
		a := &Process{Err: &out, StderrIsTTY: true}
		a.Logger(config.Log{Level: "info", Format: "auto"}).Warn("careful", "error", errors.New("x"))
		if got := strings.Contains(out.String(), "\x1b["); got != c.colours {
			t.Errorf("NO_COLOR=%q: %q", c.value, out.String())
		}
	}
}
