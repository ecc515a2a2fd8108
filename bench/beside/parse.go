package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// figures are a benchmark's results by their unit: ns/op, cpu-s/op, peak-MB.
type figures map[string]float64

var cores = regexp.MustCompile(`-\d+$`)

// parse reads what go test -bench prints: by the benchmark's name without its
// first part and the number of cores.
func parse(output string) map[string]figures {
	all := map[string]figures{}
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		_, name, _ := strings.Cut(cores.ReplaceAllString(words[0], ""), "/")
		f := figures{}
		for i := 2; i+1 < len(words); i += 2 {
			if value, err := strconv.ParseFloat(words[i], 64); err == nil {
				f[words[i+1]] = value
			}
		}
		all[name] = f
	}
	return all
}

// ratio says how many times ours goes into theirs: above 1 in our favour.
func ratio(theirs, ours float64) string {
	if theirs == 0 || ours == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f ×", theirs/ours)
}

// table is a table of Markdown.
type table struct{ strings.Builder }

func newTable(head ...string) *table {
	t := &table{}
	t.row(head...)
	t.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	return t
}

func (t *table) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
