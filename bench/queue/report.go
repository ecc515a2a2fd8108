package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// table is one table of the report.
type table struct {
	title, note string
	head        []string
	rows        [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", t.title)
	if t.note != "" {
		fmt.Fprintf(&b, "%s\n\n", t.note)
	}
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String() + "\n"
}

// costRow is a row of a table of costs: figures, and ratios to a peer's row.
// A ratio above 1 is in the first one's favour.
func costRow(name string, c cost, peers ...cost) []string {
	row := []string{name, fmt.Sprintf("%.0f", c.rate()), fmt.Sprintf("%.0f", c.clientJob()), fmt.Sprintf("%.0f", c.serverJob())}
	for _, p := range peers {
		if p.jobs == 0 || c.jobs == 0 {
			row = append(row, "–", "–")
			continue
		}
		row = append(row, times(c.rate()/p.rate()), times((p.clientJob()+p.serverJob())/(c.clientJob()+c.serverJob())))
	}
	return row
}

func times(ratio float64) string {
	if ratio < 10 {
		return fmt.Sprintf("%.1f ×", ratio)
	}
	return fmt.Sprintf("%.0f ×", ratio)
}

func spread(name string, took []time.Duration) []string {
	if len(took) == 0 {
		return []string{name, "–", "–", "0"}
	}
	return []string{name, fmt.Sprintf("%.2f", at(took, 0.5)), fmt.Sprintf("%.2f", at(took, 0.99)), fmt.Sprint(len(took))}
}

// machine says where the figures come from.
func machine() string {
	model, cores := "an unknown processor", 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model, cores = strings.TrimSpace(value), cores+1
			}
		}
	}
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%s, %d cores, load %s", model, cores, load)
}

const (
	begin = "<!-- queue: begin (make bench-queue writes this) -->"
	end   = "<!-- queue: end -->"
)

// into replaces the queue's part of the page.
func into(page, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the figures: it needs the lines %q and %q", page, begin, end)
	}
	return os.WriteFile(page, []byte(before+begin+"\n"+text+end+after), 0o644) //nolint:gosec // a page of the documentation
}
