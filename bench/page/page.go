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
