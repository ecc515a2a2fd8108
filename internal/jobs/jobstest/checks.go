package jobstest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// CheckProgram is a program of the module checks, not started: what it needs is
// not in the product's go.mod.
func CheckProgram(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("go", append([]string{"run", "-C", filepath.Join(moduleRoot(t), "checks"), "./" + name},
		args...)...)
	runAs(c, nil, true)
	return c
}

// EndProgram ends a program of CheckProgram that was started, with all that it started:
// it is a child of "go run".
func EndProgram(c *exec.Cmd) {
	if err := signalGroup(c.Process.Pid, syscall.SIGKILL); err != nil {
		_ = c.Process.Kill() // where processes have no groups
	}
	_ = c.Wait() // it was killed
}

// Countries writes a database of countries in MaxMind's format: what is known of
// each network, as JSON. It returns the file's path.
func Countries(t testing.TB, networks map[string]map[string]any) string {
	t.Helper()
	text, err := json.Marshal(networks)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "countries.mmdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd, said := CheckProgram(t, "countries"), new(strings.Builder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(text)), f, said
	if err := cmd.Run(); err != nil {
		t.Fatalf("writing countries: %v\n%s", err, said)
	}
	return f.Name()
}
