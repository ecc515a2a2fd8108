package cmsjobs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// builtPackage is the folder of sdk/js as it is published.
func builtPackage(t *testing.T) (dist string) {
	t.Helper()
	if _, err := os.Stat("sdk/js/node_modules/.bin/tsc"); err != nil {
		jobstest.Skip(t, "run npm ci in sdk/js first: %v", err)
	}
	dist = t.TempDir()
	run(t, "sdk/js", "node_modules/.bin/tsc", "--outDir", dist)
	if err := os.WriteFile(filepath.Join(dist, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dist
}

// runWorker runs a program that registers a type, and a job of it.
func runWorker(t *testing.T, b docBlock) (string, error) {
	node, dist := tool(t, "node"), builtPackage(t)
	s := newSandbox(t, "")
	url := s.service("queue.worker=false")
	ours := func(args ...string) ([]byte, error) {
		c := exec.Command(program(t), args...)
		c.Env = s.env
		return c.Output()
	}
	out, err := ours("token", "create", "docs", "--scopes", "admin,work", "--json")
	if err != nil {
		return "", err
	}
	var token struct{ Secret string }
	if err := json.Unmarshal(out, &token); err != nil {
		return "", err
	}
	code := strings.NewReplacer("@cmsjobs/sdk", filepath.Join(dist, "index.js"), "https://cms.example", url).Replace(
		b.text) + "\nfunction resize(width, options) { return options.signal.aborted ? 0 : width * 2; }\n"
	c := exec.Command(node, written(t, "main.mjs", code))
	c.Env = append(s.env, "CMSJOBS_TOKEN="+token.Secret)
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended
	alive := func() {
		select {
		case err := <-ended:
			t.Fatalf("the worker ended: %v\n%s", err, said.String())
		default:
		}
	}
	await(t, "the type", func() error {
		alive()
		_, err := ours("enqueue", "shop.resize", `{"width":21}`)
		return err
	})
	await(t, "the job", func() error {
		alive()
		return answersWith(url+"/api/v1/jobs?type=shop.resize&status=completed", token.Secret, `"shop.resize"`)
	})
	return "run by node, with a job of its type", nil
}

// checkPicture holds a picture in letters beside its page: it shows what the page explains in bold.
func checkPicture(t *testing.T, b docBlock) (string, error) {
	terms := 0
	for _, part := range strings.Split(read(t, b.page), "**")[1:] {
		if word := strings.ToLower(strings.TrimSpace(part)); word != "" && len(word) < 20 &&
			strings.Contains(b.text, word) {
			terms++
		}
	}
	if terms < 3 {
		return "", fmt.Errorf("the picture shows %d of the terms that its page explains", terms)
	}
	return "held beside the terms of its page", nil
}
