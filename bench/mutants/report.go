package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

// unknown is the outcome of a guard that was not tried yet.
const unknown outcome = "not yet run"

// results are the rows of the page's table: what is known of each guard.
type results map[string]string

// row is what names a guard in the table. A guard that was renamed, or whose test
// was, has its own row and has to be tried.
func (g guard) row() string {
	return fmt.Sprintf("| %s | %s, `%s` | `%s` ", g.promise, g.name, g.file, g.test)
}

func (o outcome) on(day string) string { return fmt.Sprintf("%s | %s |", o, day) }

// read takes from a section what earlier runs found out.
func read(section string) results {
	known := results{}
	for _, g := range guards {
		_, rest, found := strings.Cut(section, g.row())
		if line, _, _ := strings.Cut(rest, "\n"); found {
			known[g.row()] = line
		}
	}
	return known
}

func (r results) note(v trialResult, now time.Time) {
	r[v.row()] = v.outcome.on(now.UTC().Format(time.DateOnly))
}

// report is the section of the page.
func (r results) report() string {
	var table strings.Builder
	kept, left := 0, 0
	for _, g := range guards {
		found, tried := r[g.row()]
		switch {
		case !tried || strings.HasPrefix(found, string(unknown)):
			found = unknown.on("")
			left++
		case strings.HasPrefix(found, string(held)):
			kept++
		}
		fmt.Fprintf(&table, "%s%s\n", g.row(), found)
	}
	head := fmt.Sprintf("%s: `make mutants`, %d guards, %d held", page.Machine(), len(guards), kept)
	if left > 0 {
		head += fmt.Sprintf(", %d not yet run", left)
	}
	return head + ".\n\n| | guard, in | its test, without the guard | on |\n|---|---|---|---|\n" + table.String()
}

// unheld are the guards that no test noticed to be gone.
func unheld(list []trialResult) []trialResult {
	var rest []trialResult
	for _, v := range list {
		if v.outcome != held {
			rest = append(rest, v)
		}
	}
	return rest
}

func missed(list []trialResult) error {
	if rest := unheld(list); len(rest) > 0 {
		return fmt.Errorf("%d of %d guards are not held by their tests", len(rest), len(list))
	}
	return nil
}
