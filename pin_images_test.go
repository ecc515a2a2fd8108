package cmsjobs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// deploy/pin-images.sh pins every image of the real files, and its check refuses
// what is not pinned. The registry's tool is a script here.
func TestImagesCanBePinned(t *testing.T) {
	if out, err := exec.Command("deploy/pin-images.sh", "--check").CombinedOutput(); err != nil {
		t.Errorf("the project's own images: %s, %v", out, err)
	}
	folder, tools := t.TempDir(), t.TempDir()
	files := []string{"deploy/Dockerfile", "docker-compose.yml"}
	for _, name := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(read(t, name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(arguments ...string) (string, error) {
		c := exec.Command("deploy/pin-images.sh", append(arguments, folder)...)
		c.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	tool := func(digest string) {
		if err := os.WriteFile(filepath.Join(tools, "crane"), []byte("#!/bin/sh\necho "+digest+"\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
	}
	var images int
	for _, name := range files {
		for line := range strings.Lines(read(t, name)) {
			if strings.HasPrefix(line, "FROM ") || strings.HasPrefix(strings.TrimSpace(line), "image: ") {
				images++
			}
		}
	}
	pinned := func(digest string) (n int) {
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			n += strings.Count(string(text), "@"+digest)
		}
		return n
	}
	one, two := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	tool("not-found")
	if out, err := run(); err == nil || !strings.Contains(out, "no digest") || pinned("not-found") > 0 {
		t.Errorf("an answer that is no digest: %s, %v", out, err)
	}
	for _, digest := range []string{one, two} { // the second time, a tag has moved
		tool(digest)
		if out, err := run(); err != nil || pinned(digest) != images {
			t.Errorf("%d of %d images are pinned: %s, %v", pinned(digest), images, out, err)
		}
		if out, err := run("--check"); err != nil {
			t.Errorf("pinned, but %s, %v", out, err)
		}
	}
	path := filepath.Join(folder, "docker-compose.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "@"+two, "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run("--check"); err == nil || strings.Count(out, "is not pinned") != 1 {
		t.Errorf("the check takes an image without digest: %s, %v", out, err)
	}
}
