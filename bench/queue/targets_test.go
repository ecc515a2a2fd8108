package main

import (
	"slices"
	"strings"
	"testing"
)

// An aim is printed with the figure it was measured by, met or missed, and left out
// where a figure is missing.
func TestAimsAreMetOrMissed(t *testing.T) {
	f := figures{"side mysql laravel": 1.25, "side mysql best": 85, "side mariadb best": 100,
		"mysql idle queries": 1.5}
	rows := map[string][]string{}
	for _, row := range f.targets().rows {
		rows[row[0]] = row[1:]
	}
	for name, want := range map[string][]string{
		"drain, MySQL : Laravel's one worker": {"68.00", "≥ 60", "met"},
		"drain, MySQL : MariaDB, in turns":    {"0.85", "≥ 0.9", "missed"},
		"MySQL: idle, queries a second":       {"1.50", "≤ 1", "missed"},
	} {
		if !slices.Equal(rows[name], want) {
			t.Errorf("%s: %q, want %q", name, rows[name], want)
		}
	}
	if len(rows) != 3 {
		t.Errorf("%d aims without their figures: %q", len(rows)-3, rows)
	}
}

// What a commit costs is stated for each server, once.
func TestTheReportStatesTheServers(t *testing.T) {
	b := &bench{found: figures{}, short: true, servers: [][]string{
		{"MySQL", "9.7.4", "1", "ON", "O_DIRECT", "OFF", "536870912"}}}
	for _, want := range []string{"| server | version | innodb_flush_log_at_trx_commit |",
		"| MySQL | 9.7.4 | 1 | ON |", "A short run"} {
		if !strings.Contains(b.report(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}
