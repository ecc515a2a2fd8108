package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// TestTheJavaScriptSDK runs the SDK's own tests against this server. They need
// node and "npm ci" in sdk/js.
func TestTheJavaScriptSDK(t *testing.T) {
	dir := filepath.Join("..", "..", "sdk", "js")
	compiler := filepath.Join("node_modules", ".bin", "tsc")
	if _, err := os.Stat(filepath.Join(dir, compiler)); err != nil {
		skip(t, "run npm ci in sdk/js first: %v", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		skip(t, "no node: %v", err)
	}
	s := newSite(t, jobstest.SQLite)
	for _, command := range [][]string{{"./" + compiler}, {node, "--test", "test/"}} {
		c := exec.CommandContext(t.Context(), command[0], command[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "CMSJOBS_URL="+s.http.URL, "CMSJOBS_TOKEN="+s.tokens[access.Admin], "CI=true")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

// skip leaves out a test whose tools are not installed; in CI that is a fault.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
