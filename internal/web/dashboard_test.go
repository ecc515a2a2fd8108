package web_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/web/feature/health"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

var metricName = regexp.MustCompile(`cmsjobs_[a-z_]+`)

// TestTheDashboardShowsWhatThereIs holds each expression of the Grafana
// dashboard against /metrics: every name is there, and every name is shown.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "cmsjobs.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatal("the dashboard is no JSON")
	}
	m := health.NewMetrics("1", func(string) bool { return true })
	m.Enqueued("q", "k")
	m.Ended(jobs.Settlement{Outcome: jobs.Completed})
	m.Missed("s")
	m.Mailed("accepted", 1)
	s := newSite(t, jobstest.SQLite, func(c *config) {
		c.Metrics, c.PublicMetrics, c.Figures, c.Conditions = m.Registry, true, figures, watched
	})
	s.enqueue(`{"type":"cache.clear"}`)
	shown := metricName.FindAllString(string(text), -1)
	there := metricName.FindAllString(string(s.do("GET", "/metrics", nil).want(t, 200).body), -1)
	for _, name := range shown {
		if !slices.Contains(there, name) {
			t.Errorf("the dashboard asks for %s, which is not there", name)
		}
	}
	base := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range there {
		if name = base.ReplaceAllString(name, ""); !slices.ContainsFunc(shown, func(s string) bool {
			return base.ReplaceAllString(s, "") == name
		}) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
