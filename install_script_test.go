package cmsjobs_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// releaseArchive is an archive as goreleaser makes it, with a program in it that says
// its version.
func releaseArchive(t *testing.T, version string) []byte {
	t.Helper()
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	w := tar.NewWriter(packed)
	for name, text := range map[string]string{"LICENSE": "MIT\n",
		"cmsjobs": "#!/bin/sh\necho cmsjobs " + version + "\n"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// The script installs what checksums.txt says, and nothing else: a program that is there
// stays whatever goes wrong.
func TestTheInstallScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script for a Unix shell")
	}
	if _, err := exec.LookPath("curl"); err != nil && os.Getenv("CI") == "" {
		t.Skip("curl is not installed")
	}
	name := func(version string) string {
		return fmt.Sprintf("cmsjobs_%s_%s_%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
	}
	archive := releaseArchive(t, "9.8.7")
	line := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), name("9.8.7"))
	other := fmt.Sprintf("%x  %s\n", sha256.Sum256(nil), "cmsjobs_9.8.7_plan9_amd64.tar.gz")
	const different = "is not what checksums.txt says"
	for what, c := range map[string]struct {
		sums    string
		archive []byte
		base    string // "" is the server of this test
		words   []string
		says    string
		fails   bool
	}{
		"a release": {sums: other + line, archive: archive, says: "cmsjobs 9.8.7"},
		"a version": {sums: line, archive: archive, words: []string{"--version", "v9.8.7"}, says: "cmsjobs 9.8.7"},
		"another version": {sums: line, archive: archive, words: []string{"--version", "9.8.6"}, fails: true,
			says: "names no archive for"},
		"other bytes":     {sums: line, archive: releaseArchive(t, "6.6.6"), fails: true, says: different},
		"half an archive": {sums: line, archive: archive[:len(archive)/2], fails: true, says: different},
		"no sum":          {sums: other, archive: archive, fails: true, says: "names no archive for"},
		"two sums": {sums: line + strings.ReplaceAll(line, "9.8.7", "9.8.8"), archive: archive, fails: true,
			says: "several archives"},
		"no archive":     {sums: line, fails: true, says: "cannot be downloaded"},
		"no https":       {base: "http://192.0.2.1/release", fails: true, says: "no https address"},
		"no such word":   {words: []string{"--force"}, fails: true, says: "unknown: --force"},
		"no such folder": {words: []string{"--to", "/nowhere/at/all"}, fails: true, says: "there is no folder"},
	} {
		t.Run(what, func(t *testing.T) {
			files := http.NewServeMux()
			files.HandleFunc("/checksums.txt", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.sums) })
			if c.archive != nil {
				files.HandleFunc("/"+name("9.8.7"), func(w http.ResponseWriter, _ *http.Request) {
					_, _ = w.Write(c.archive)
				})
			}
			server := httptest.NewServer(files)
			defer server.Close()
			base := server.URL
			if c.base != "" {
				base = c.base
			}
			folder := t.TempDir()
			program := filepath.Join(folder, "cmsjobs")
			if err := os.WriteFile(program, []byte("the old one"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", append([]string{"deploy/install.sh", "--to", folder}, c.words...)...)
			cmd.Env = append(os.Environ(), "CMSJOBS_BASE_URL="+base, "TMPDIR="+t.TempDir(),
				"http_proxy=", "HTTP_PROXY=")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) {
				t.Errorf("%v\n%s", err, out)
			}
			if kept := read(t, program) == "the old one"; kept != c.fails {
				t.Errorf("the old program is there: %v\n%s", kept, out)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
}

// The formula and the manifest have the sums of checksums.txt; a release that lacks an archive has
// neither. How an installer reads them, make packages-check tries.
func TestTheRecipesHaveTheSumsOfTheRelease(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script for a Unix shell")
	}
	dist := t.TempDir()
	sums := map[string]string{}
	list := ""
	for i, name := range []string{"linux_amd64.tar.gz", "linux_arm64.tar.gz", "darwin_amd64.tar.gz",
		"darwin_arm64.tar.gz", "windows_amd64.zip"} {
		name = "cmsjobs_1.2.3_" + name
		sums[name] = strings.Repeat(string(rune('a'+i)), 64)
		list += sums[name] + "  " + name + "\n"
	}
	recipe := func(list string) (string, error) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dist, "checksums.txt"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("bash", "deploy/release-recipes.sh", dist, "1.2.3").CombinedOutput()
		return string(out), err
	}
	for name := range sums {
		out, err := recipe(strings.Replace(list, name, "other", 1))
		if _, there := os.Stat(filepath.Join(dist, "cmsjobs.json")); err == nil || there == nil ||
			!strings.Contains(out, "checksums.txt has no "+name) {
			t.Errorf("without %s: %v\n%s", name, err, out)
		}
	}
	if out, err := recipe(list); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	recipes := read(t, filepath.Join(dist, "cmsjobs.rb")) + read(t, filepath.Join(dist, "cmsjobs.json"))
	for name, sum := range sums {
		_, after, there := strings.Cut(recipes, "/releases/download/v1.2.3/"+name+`"`)
		if line, _, _ := strings.Cut(strings.TrimLeft(after, ",\n "), "\n"); !there || !strings.Contains(line, sum) {
			t.Errorf("%s has another sum than %s:\n%s", name, sum, recipes)
		}
	}
	var manifest map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dist, "cmsjobs.json"))), &manifest); err != nil ||
		manifest["version"] != "1.2.3" {
		t.Errorf("the manifest: %v, %v", manifest, err)
	}
}
