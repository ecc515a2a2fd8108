package web_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// figures are what a database keeps of a service.
func figures(context.Context) (health.StoredFigures, error) {
	return health.StoredFigures{Workers: 2, Schedulers: 1, Circuits: map[string]bool{
		"smtp:mail": true, "s3:files": false},
		Successes: map[string]time.Time{"sitemap": noon, "never": {}}, Backups: true, BackedUp: noon, Verified: noon,
		BackupBytes: 7}, nil
}

// watched are conditions of all sorts.
func watched(context.Context) []web.Condition {
	return []web.Condition{
		{Name: "no_worker", Severity: "failing", Active: true, Title: "No worker runs", Detail: "401 jobs have waited",
			Since: noon, Fix: "Start the service", Page: "/admin/workers"},
		{Name: "circuit_open", Severity: "warning", Active: true, Title: "A circuit breaker is open"},
		{Name: "temp_databases_left", Severity: "warning"},
		{Name: "disk_full", Severity: "failing", Active: true, Elsewhere: true, Title: "A disk is full"},
	}
}

func TestReadinessFollowsTheConditions(t *testing.T) {
	list := watched(t.Context())
	s := newSite(t, jobstest.SQLite, func(c *config) {
		c.Conditions = func(context.Context) []web.Condition { return list }
		c.ConditionNames = []string{"no_worker", "circuit_open", "temp_databases_left", "disk_full", "no_backup"}
	})
	ask := func(path string, status int) health.Health {
		t.Helper()
		var h health.Health
		s.do("GET", path, nil).want(t, status).into(t, &h)
		return h
	}
	if h := ask("/readyz", 503); !slices.Equal(h.Failing, []string{"no_worker"}) ||
		!slices.Equal(h.Warnings, []string{"circuit_open"}) {
		t.Errorf("all: %+v", h)
	}
	if h := ask("/readyz?check=circuit_open", 503); !slices.Equal(h.Failing, []string{"circuit_open"}) {
		t.Errorf("a warning that is asked for: %+v", h)
	}
	ask("/readyz?check=temp_databases_left", 200)
	ask("/readyz?check=no_backup", 200) // known, and not measured here
	ask("/readyz?check=disk_full", 200) // another host's disk leaves this process ready
	s.do("GET", "/readyz?check=nosuch", nil).want(t, 400)
	page := s.do("GET", "/admin", nil, basic("viewer", "right")).want(t, 200).body
	for _, piece := range []string{"No worker runs", "401 jobs have waited", "Start the service",
		`href="/admin/workers"`, "A disk is full"} {
		if !bytes.Contains(page, []byte(piece)) {
			t.Errorf("the page does not say %q", piece)
		}
	}
	if !bytes.Contains(page, []byte("(since <time datetime=")) || bytes.Contains(page, []byte("&lt;")) {
		t.Error("the page shows the markup of its times")
	}
	var all health.ConditionList
	s.do("GET", "/api/v1/conditions", nil, bearer(s.tokens["read"])).want(t, 200).into(t, &all)
	if len(all.Items) != 4 || all.Items[0].Detail == "" {
		t.Errorf("%+v", all)
	}
	s.do("GET", "/api/v1/conditions", nil).want(t, 401)
	list = list[1:3]
	if h := ask("/readyz", 200); h.Status != "ok" || !slices.Equal(h.Warnings, []string{"circuit_open"}) {
		t.Errorf("with a warning only: %+v", h)
	}
}
