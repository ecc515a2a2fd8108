package page

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Replace writes text between a section's marks: the lines
// "<!-- NAME: begin (COMMAND writes this) -->" and "<!-- NAME: end -->". It is an
// error when the page has no such section.
func Replace(path, name, text string) error {
	before, _, after, err := parts(path, name)
	if err != nil {
		return err
	}
	whole := before + strings.TrimRight(text, "\n") + "\n" + after
	return os.WriteFile(path, []byte(whole), 0o644) //nolint:gosec // a page of the documentation
}

// Section returns what stands between a section's marks, under the terms of Replace.
func Section(path, name string) (string, error) {
	_, text, _, err := parts(path, name)
	return text, err
}

// parts are the page to the end of the section's first mark, the section, and
// the page from its second mark.
func parts(path, name string) (before, section, after string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", "", err
	}
	start, end := "<!-- "+name+": begin", "<!-- "+name+": end -->"
	before, rest, found := strings.Cut(string(text), start)
	mark, rest, open := strings.Cut(rest, "-->\n")
	section, after, closed := strings.Cut(rest, end)
	if !found || !open || !closed {
		return "", "", "", fmt.Errorf("%s has no section %s: it needs the lines %s (…) --> and %s", path, name, start,
			end)
	}
	return before + start + mark + "-->\n", section, end + after, nil
}

// quiet is the load of the last minute below which figures of a page are measured;
// patience is how long Begin waits for it.
const (
	quiet    = 1.5
	patience = 10 * time.Minute
)

// Begin says for a report when and where it is measured, and how busy the machine is
// before. What is written to a page (path is not empty) is measured on a quiet machine
// only: Begin waits for that, and gives up after ten minutes.
func Begin(ctx context.Context, now time.Time, path string) (string, error) {
	if path != "" {
		if err := awaitQuiet(ctx, load, time.After(patience)); err != nil {
			return "", err
		}
	}
	return now.Format(time.DateOnly) + ", " + Machine() + " at the start", nil
}

func awaitQuiet(ctx context.Context, load func() (float64, error), end <-chan time.Time) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for said := false; ; said = true {
		now, err := load()
		if err != nil {
			return fmt.Errorf("is the machine quiet? %w", err)
		}
		if now < quiet {
			return nil
		}
		if !said {
			fmt.Fprintf(os.Stderr, "the load is %.2f: waiting until it is below %.1f\n", now, quiet)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			return fmt.Errorf("the load is %.2f: a page has figures of a quiet machine (below %.1f); without -page "+
				"they are printed only", now, quiet)
		case <-look.C:
		}
	}
}

// load is the machine's load of the last minute.
func load() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	word, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(word, 64)
}

// Machine says where figures come from: processor, cores and load.
func Machine() string {
	model, cores := "an unknown processor", 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model, cores = strings.TrimSpace(value), cores+1
			}
		}
	}
	busy := "unknown"
	if now, err := load(); err == nil {
		busy = fmt.Sprintf("%.2f", now)
	}
	return fmt.Sprintf("%s, %d cores, load %s", model, cores, busy)
}
