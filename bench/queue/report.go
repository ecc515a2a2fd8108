package main

import (
	"fmt"
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
	row := []string{name, fmt.Sprintf("%.0f", c.rate()), fmt.Sprintf("%.0f", c.clientJob()),
		fmt.Sprintf("%.0f", c.serverJob())}
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
	return []string{name, fmt.Sprintf("%.2f", at(took, 0.5)), fmt.Sprintf("%.2f", at(took, 0.99)),
		fmt.Sprint(len(took))}
}
