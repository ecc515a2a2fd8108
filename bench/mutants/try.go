package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// outcome is how the test of a guard ended without it.
type outcome string

const (
	held     outcome = "fails"          // by an assertion, as it should
	missing  outcome = "**passes**"     // it does not notice
	skipped  outcome = "**is skipped**" // something that it needs is not installed
	hung     outcome = "**hangs**"      // only its time limit ended it
	panicked outcome = "**panics**"     // it fails, and not by a message of the test
	unbuilt  outcome = "does not build" // the entry is wrong
)

// trialResult is what was found out about a guard.
type trialResult struct {
	guard
	outcome outcome
	passed  bool // all of it, or what of it was not skipped
	took    time.Duration
	said    string // the end of what the test printed
}

// patience is how long a test may take that says nothing else.
const patience = 5 * time.Minute

// assertion is a line that a test printed about what it found.
var assertion = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: `)

// try runs the guard's test without the guard.
func (g guard) try(ctx context.Context) (trialResult, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return trialResult{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := g.overlay(dir)
	if err != nil {
		return trialResult{}, err
	}
	// By the environment, so that programs which a test builds are without it, too.
	return g.run(ctx, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
}

// control runs the guard's test with the guard: it must pass, or its failure
// without it says nothing.
func (g guard) control(ctx context.Context) error {
	v, err := g.run(ctx)
	if err != nil {
		return err
	}
	if !v.passed {
		return fmt.Errorf("%s %s, though its guard is there:\n%s", g.test, v.outcome, v.said)
	}
	fmt.Printf("%-4s %-60s %-50s passes with it (%s)\n", g.promise, g.name, g.test, v.took.Round(time.Second))
	return nil
}

// run runs the guard's test in an environment that has more in it than ours.
func (g guard) run(ctx context.Context, environment ...string) (trialResult, error) {
	limit := g.patience
	if limit == 0 {
		limit = patience
	}
	test := "^" + g.test + "$"
	if g.only != "" {
		for part := range strings.SplitSeq(g.only, "/") {
			test += "/" + regexp.QuoteMeta(part) // begins with it, as a rule
		}
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout", limit.String(), "-run", test, g.in)
	cmd.Env = append(os.Environ(), environment...)
	if g.full {
		cmd.Env = append(cmd.Env, "CMSJOBS_SOAK=1")
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		return trialResult{}, ctx.Err()
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return trialResult{}, err
	}
	found := judge(said.String(), err == nil)
	passed := err == nil && found != unbuilt && strings.Contains(said.String(), "--- PASS: "+g.test)
	return trialResult{g, found, passed, time.Since(began), last(said.String(), 3000)}, nil
}

// judge reads what go test printed.
func judge(said string, passed bool) outcome {
	switch {
	case passed && (!strings.Contains(said, "=== RUN") || strings.Contains(said, "no tests to run")):
		return unbuilt // no test has that name
	case passed && strings.Contains(said, "--- SKIP"):
		return skipped
	case passed:
		return missing
	case strings.Contains(said, "panic: test timed out"):
		return hung
	case strings.Contains(said, "[build failed]"), strings.Contains(said, "[setup failed]"):
		return unbuilt
	case strings.Contains(said, "--- FAIL") && assertion.MatchString(said):
		return held
	}
	return panicked
}

// overlay writes the file without the guard, and what tells the compiler to
// read it instead.
func (g guard) overlay(dir string) (string, error) {
	path, err := filepath.Abs(g.file)
	if err != nil {
		return "", err
	}
	source, err := g.remove()
	if err != nil {
		return "", err
	}
	mutant := filepath.Join(dir, filepath.Base(g.file))
	if err := os.WriteFile(mutant, source, 0o600); err != nil {
		return "", err
	}
	table, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, table, 0o600)
}

// remove returns the guard's file without it.
func (g guard) remove() ([]byte, error) {
	source, err := os.ReadFile(g.file)
	if err != nil {
		return nil, err
	}
	for _, swap := range [][2]string{{g.old, g.without}, {g.also, g.instead}} {
		if swap[0] == "" {
			continue
		}
		if n := bytes.Count(source, []byte(swap[0])); n != 1 {
			return nil, fmt.Errorf("the guard's text stands %d times in %s: fix its entry", n, g.file)
		}
		source = bytes.Replace(source, []byte(swap[0]), []byte(swap[1]), 1)
	}
	return source, nil
}

func last(text string, n int) string { return text[max(0, len(text)-n):] }
