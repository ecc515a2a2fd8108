package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFaultOfAnotherSystemIsSeen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module example.org/sample\n\ngo 1.26\n",
		"sample.go":          "package sample\n\nimport \"strings\"\n\nvar Word = strings.ToUpper(word())\n",
		"word_windows.go":    "package sample\n\nfunc word() int { return 1 }\n",
		"word_other.go":      "//go:build !windows\n\npackage sample\n\nfunc word() string { return \"\" }\n",
		"sample_test.go":     "package sample\n\nimport \"testing\"\n\nfunc TestWord(t *testing.T) { t.Log(Word) }\n",
		"more_linux_test.go": "package sample\n\nvar _ int = \"not on Windows\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, fault := range map[string]string{"windows": "cannot use word() (value of type int)", "darwin": "",
		"linux": "cannot use \"not on Windows\""} {
		n, faults, err := check(dir, system)
		if err != nil || n != 2 {
			t.Fatalf("%s: %d packages, %v", system, n, err)
		}
		if got := strings.Join(faults, "\n"); fault == "" && got != "" || !strings.Contains(got, fault) {
			t.Errorf("%s: %s", system, got)
		}
	}
}
