package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	logs := flag.String("record", "", "a folder with general logs of MySQL servers (*.log) to make corpus.txt from")
	keep := flag.Bool("keep", false, "with -record, keep what corpus.txt has: the logs are of some packages only")
	flag.Parse()
	if err := record(*logs, "corpus.txt", *keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// record writes the distinct statements of all logs in a folder, and with keep
// those that are there already.
func record(dir, to string, keep bool) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no logs in %q: run make corpus (%w)", dir, err)
	}
	statements := map[string]bool{}
	if keep {
		before, err := os.ReadFile(to)
		if err != nil {
			return fmt.Errorf("reading what was recorded: %w", err)
		}
		for line := range strings.Lines(string(before)) {
			statements[strings.TrimSuffix(line, "\n")] = true
		}
	}
	for _, file := range files {
		if err := readLog(file, func(statement string) {
			if s := normalised(statement); kept(s) {
				statements[s] = true
			}
		}); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, s := range slices.Sorted(maps.Keys(statements)) {
		fmt.Fprintln(w, s)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d statements from %d logs\n", len(statements), len(files))
	return f.Close()
}
