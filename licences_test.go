package cmsjobs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// licences that go into an MIT program without a word of their authors, by a
// sentence that stands in each.
var licences = []struct{ name, sentence string }{
	{"Apache-2.0", "apache license"},
	{"MPL-2.0", "mozilla public license"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"BSD", "redistribution and use in source and binary forms"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software"},
	{"ISC", "permission to use, copy, modify, and distribute this software"},
	{"Unlicense", "this is free and unencumbered software"},
	{"CC0", "creative commons legal code"},
}

// Every module that is linked into the binary has a licence that lets it.
func TestLicences(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}",
		"./cmd/cmsjobs").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules[path] = dir
		}
	}
	if len(modules) < 20 {
		t.Fatalf("only %d modules: the list cannot be right", len(modules))
	}
	for path, dir := range modules {
		if name := licenceOf(t, dir); name == "" {
			t.Errorf("%s has no licence that is known to let us: look into %s", path, dir)
		}
	}
}

// licenceOf reads a module's licence file and names what it is.
func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") &&
			!strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "UNLICENSE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(strings.ToLower(string(text))), " ")
		for _, l := range licences {
			if strings.Contains(words, l.sentence) {
				return l.name
			}
		}
	}
	return ""
}
