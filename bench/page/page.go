package page

import (
	"fmt"
	"os"
	"strings"
)

// Replace writes text between a section's marks: the lines
// "<!-- NAME: begin (COMMAND writes this) -->" and "<!-- NAME: end -->". It is an
// error when the page has no such section.
func Replace(path, name, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), "<!-- "+name+": begin")
	mark, rest, open := strings.Cut(rest, "-->\n")
	end := "<!-- " + name + ": end -->"
	_, after, closed := strings.Cut(rest, end)
	if !found || !open || !closed {
		return fmt.Errorf("%s has no section %s: it needs the lines <!-- %s: begin (…) --> and %s", path, name, name, end)
	}
	whole := before + "<!-- " + name + ": begin" + mark + "-->\n" + strings.TrimRight(text, "\n") + "\n" + end + after
	return os.WriteFile(path, []byte(whole), 0o644) //nolint:gosec // a page of the documentation
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
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%s, %d cores, load %s", model, cores, load)
}
