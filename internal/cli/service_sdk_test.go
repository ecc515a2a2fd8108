package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

const compiler = "./node_modules/.bin/tsc"

// compileSDK compiles sdk/js once: tests that run beside one another read what it writes.
var compileSDK = sync.OnceValues(func() ([]byte, error) {
	c := exec.Command(compiler)
	c.Dir = filepath.Join("..", "..", "sdk", "js")
	return c.CombinedOutput()
})

// javaScriptSDK is sdk/js, compiled. It needs node and "npm ci" there.
func javaScriptSDK(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "sdk", "js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, compiler)); err != nil {
		jobstest.Skip(t, "run npm ci in sdk/js first: %v", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		jobstest.Skip(t, "no node: %v", err)
	}
	if out, err := compileSDK(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// runIn runs a program in a folder and returns what it says.
func runIn(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestTheJavaScriptSDK runs the SDK's own tests against the running program.
func TestTheJavaScriptSDK(t *testing.T) {
	t.Parallel()
	dir := javaScriptSDK(t)
	s := startService(t, "schedule: {enabled: false}\n", newDatabase(t, jobstest.MySQL, tables.Stock))
	out := runIn(t, dir, []string{"CMSJOBS_URL=" + s.url, "CMSJOBS_TOKEN=" + s.token("admin"), "CI=true"}, "node",
		"--test", "test/")
	if passed := regexp.MustCompile(`(?m)^(?:#|ℹ) pass (\d+)$`).FindStringSubmatch(out); passed == nil ||
		len(passed[1]) == 1 && passed[1] < "8" {
		t.Errorf("fewer than 8 tests ran:\n%s", out)
	}
}

// TestTheJavaScriptPackageIsWhole packs the SDK as npm publishes it, and
// compiles and runs a program that has nothing but the package.
func TestTheJavaScriptPackageIsWhole(t *testing.T) {
	t.Parallel()
	dir, project := javaScriptSDK(t), t.TempDir()
	var packed []struct {
		Filename string
		Files    []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(runIn(t, dir, nil, "npm", "pack", "--silent", "--json", "--pack-destination",
		project)), &packed); err != nil {
		t.Fatal(err)
	}
	for _, f := range packed[0].Files {
		if strings.HasPrefix(f.Path, "test/") || strings.HasPrefix(f.Path, "src/") {
			t.Errorf("%s would be published", f.Path)
		}
	}
	installed := filepath.Join(project, "node_modules", "@cmsjobs", "sdk")
	if err := os.MkdirAll(installed, 0o755); err != nil {
		t.Fatal(err)
	}
	runIn(t, project, nil, "tar", "xzf", packed[0].Filename, "-C", installed, "--strip-components=1")
	for name, text := range map[string]string{
		"package.json": `{"type": "module"}`,
		"main.ts": `import { JobsService, JobsError, type Job, type JobStats } from "@cmsjobs/sdk";
const jobs = new JobsService({ baseUrl: "http://127.0.0.1:1" });
try {
  const job: Job<{ force: boolean }> = await jobs.get<{ force: boolean }>("1");
  const force: boolean = job.payload.force;
  const stats: JobStats = await jobs.stats();
  console.log(force, stats.queued);
} catch (e) {
  console.log(e instanceof JobsError && e.status);
}
`} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runIn(t, project, nil, filepath.Join(dir, compiler), "--strict", "--target", "es2022", "--module", "nodenext",
		"--lib", "es2022,dom", "main.ts")
	if out := runIn(t, project, nil, "node", "main.js"); strings.TrimSpace(out) != "0" {
		t.Errorf("the program says %q", out)
	}
}

// TestTheJavaScriptSDKInABrowser serves a page and the API from one origin, as
// a proxy in front of CMS and service does. The page signs in and works by the
// session's cookie and form token.
func TestTheJavaScriptSDKInABrowser(t *testing.T) {
	t.Parallel()
	dir := javaScriptSDK(t)
	chromium := jobstest.Chromium(t)
	s := startService(t, "schedule: {enabled: false}\nhttp: {admin_password: right}\n",
		newDatabase(t, jobstest.SQLite, tables.Stock))
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", httputil.NewSingleHostReverseProxy(target))
	mux.Handle("/dist/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!doctype html><p id="said"></p><script type="module">
import { JobsService } from "/dist/index.js";
const said = document.getElementById("said");
try {
  await fetch("/api/v1/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name: "admin", password: "right" }) });
  const jobs = new JobsService({ baseUrl: "" });
  const { id } = await jobs.enqueue({ type: "cache.clear", queue: "nobody", payload: { tags: ["browser"] } });
  await jobs.delete(id);
  said.textContent = (await jobs.get(id)).status;
} catch (e) { said.textContent = String(e); }
</script>`))
	})
	page := httptest.NewServer(mux)
	defer page.Close()
	out := runIn(t, dir, nil, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=60000", "--dump-dom", page.URL)
	if !strings.Contains(out, `<p id="said">cancelled</p>`) {
		t.Errorf("the page shows %s\n%s", out, s.log())
	}
}
