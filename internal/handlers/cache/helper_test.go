package cache

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// laravelSite is a CMS's folder and its (empty) database.
type laravelSite struct {
	t    testing.TB
	site *cms.Site
	Config
}

func newLaravelSite(t testing.TB, engine jobstest.Engine, env cms.Env) *laravelSite {
	t.Helper()
	site := &cms.Site{DB: jobstest.Open(t, engine).DB, Root: t.TempDir(), Env: env}
	return &laravelSite{t: t, site: site, Config: Config{Site: site, Now: func() time.Time { return noon }}}
}

func (h *laravelSite) write(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.site.Root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *laravelSite) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(h.site.Root, filepath.FromSlash(name)))
	return err == nil
}

// check fails for each file that is not there as it should be.
func (h *laravelSite) check(there bool, names ...string) {
	h.t.Helper()
	for _, name := range names {
		if h.exists(name) != there {
			h.t.Errorf("%s is there: %v; it should be: %v", name, !there, there)
		}
	}
}

func (h *laravelSite) sql(statement string, args ...any) {
	h.t.Helper()
	if _, err := h.site.DB.Exec(h.site.DB.Rebind(statement), args...); err != nil {
		h.t.Fatalf("%s: %v", statement, err)
	}
}

func (h *laravelSite) count(query string, args ...any) (n int64) {
	h.t.Helper()
	if err := h.site.DB.Get(&n, h.site.DB.Rebind(query), args...); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// run runs a job as a worker would and returns its report and what follows it.
func (h *laravelSite) run(kind, payload string) (Report, []jobs.Spec) {
	h.t.Helper()
	registry := jobs.NewRegistry()
	New(h.Config).Register(registry)
	entry, known := registry.Lookup(kind)
	if !known {
		h.t.Fatalf("no type %s", kind)
	}
	run := jobs.NewRun(h.Now)
	if err := entry.Run(jobs.WithRun(context.Background(), run),
		jobs.Job{Type: kind, Data: json.RawMessage(payload)}); err != nil {
		h.t.Fatalf("%s %s: %v", kind, payload, err)
	}
	result, next := run.Result()
	var r Report
	if err := json.Unmarshal(result, &r); err != nil {
		h.t.Fatalf("the result %s: %v", result, err)
	}
	return r, next
}
