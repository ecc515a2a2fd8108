package modules_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const product = "../.."

// modules are those of the packages that the product's packages need.
func modules(t *testing.T, environ []string, how ...string) []string {
	t.Helper()
	words := append([]string{"list", "-C", product, "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, how...)
	cmd := exec.CommandContext(t.Context(), "go", append(words, "./...")...)
	cmd.Env = append(cmd.Environ(), environ...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v", words, err)
	}
	list := strings.Fields(string(out))
	slices.Sort(list)
	return slices.Compact(list)
}

// TestTheProductRequiresNothingForTestsAlone compares what is required, what the
// program is built of on any system, and what tests are built of.
func TestTheProductRequiresNothingForTestsAlone(t *testing.T) {
	var built []string
	for _, system := range []string{"linux", "darwin", "windows"} {
		built = append(built, modules(t, []string{"GOOS=" + system, "CGO_ENABLED=0"})...)
	}
	tested := modules(t, nil, "-test")
	for _, path := range tested {
		if !slices.Contains(built, path) {
			t.Errorf("%s is needed by tests of the product alone: move them into the module checks", path)
		}
	}
	for _, path := range required(t) {
		if !slices.Contains(built, path) && !slices.Contains(tested, path) {
			t.Errorf("go.mod requires %s, which no package needs: go mod tidy", path)
		}
	}
	if len(built) < 30 {
		t.Errorf("only %d modules are in the program: the test looks in the wrong place", len(built))
	}
}

// required are the direct requirements of go.mod.
func required(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = product
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range mod.Require {
		if !r.Indirect {
			list = append(list, r.Path)
		}
	}
	return list
}
