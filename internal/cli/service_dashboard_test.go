package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// dashboard is deploy/grafana/cmsjobs.json, as far as Grafana insists on it.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Datasource  struct{ Type, UID string }
		Targets     []struct{ RefID, Expr string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "cmsjobs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTheDashboardIsOne checks what makes Grafana refuse a dashboard, or show
// it wrongly: ids, places, the data source that the person chooses.
func TestTheDashboardIsOne(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 30 || len(d.Templating.List) != 1 ||
		d.Templating.List[0].Type != "datasource" || d.Templating.List[0].Query != "prometheus" {
		t.Errorf("%+v", d)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || len(p.Targets) == 0 || p.Datasource.Type != "prometheus" ||
			p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d: %+v", p.ID, p)
		}
		ids[p.ID] = true
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" {
				t.Errorf("%s has two queries %q", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %s or the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

var metricName = regexp.MustCompile(`cmsjobs_[a-z0-9_]+`)

// Figures that are absent until their part has worked once.
var later = regexp.MustCompile(`schedule_|mail_sent|backup_|breaker_open`)

// TestTheDashboardShowsTheRunningService asks a real Prometheus, which scrapes
// the running program, every question of the dashboard.
func TestTheDashboardShowsTheRunningService(t *testing.T) {
	t.Parallel()
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		jobstest.Skip(t, "apt-get install prometheus: %v", err)
	}
	s := startService(t, "http: {public_metrics: true}\nschedule: {enabled: false}\n",
		newDatabase(t, jobstest.SQLite, tables.Stock))
	admin := bearer(s.token("admin"))
	s.ask(201, "POST", "/api/v1/jobs/batch",
		`{"jobs":[{"type":"cmsjobs.probe"},{"type":"cmsjobs.probe"},{"type":"cmsjobs.probe","payload":{"fail":"no luck"},"max_attempts":1}]}`, admin, nil)
	ask := startPrometheus(t, prometheus, strings.TrimPrefix(s.url, "http://"))
	for deadline := time.Now().Add(2 * time.Minute); len(
		ask(`rate(cmsjobs_jobs_processed_total[5m])`)) == 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Prometheus has no figures")
		}
	}
	shown := map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[strings.TrimSuffix(name, "_bucket")] = true
			}
			if series := ask(target.Expr); len(series) == 0 && !later.MatchString(target.Expr) {
				t.Errorf("%s shows nothing: %s", p.Title, target.Expr)
			}
		}
	}
	_, text := s.try("GET", "/metrics", "", nil)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (cmsjobs_\S+)`).FindAllSubmatch(text, -1) {
		if !shown[string(m[1])] {
			t.Errorf("the dashboard does not show %s", m[1])
		}
		delete(shown, string(m[1]))
	}
	for name := range shown {
		if !later.MatchString(name) {
			t.Errorf("the dashboard asks for %s, which the service does not export", name)
		}
	}
}

// startPrometheus scrapes a target each second, and returns how to ask it.
func startPrometheus(t *testing.T, program, target string) func(expression string) []json.RawMessage {
	t.Helper()
	return startPrometheusWith(t, program, fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: "+
		"cmsjobs, static_configs: [{targets: [%q]}]}]\n", target))
}

// startPrometheusWith runs Prometheus with a configuration.
func startPrometheusWith(t *testing.T, program, config string) func(expression string) []json.RawMessage {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free now
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := exec.Command(program, "--config.file="+filepath.Join(dir, "p.yml"), "--storage.tsdb.path="+dir,
		"--web.listen-address="+address)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return func(expression string) []json.RawMessage {
		t.Helper()
		answer, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(expression))
		if err != nil {
			return nil // it is starting
		}
		defer answer.Body.Close()
		var body struct {
			Error string
			Data  struct{ Result []json.RawMessage }
		}
		if answer.StatusCode == http.StatusServiceUnavailable {
			return nil
		}
		if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || body.Error != "" {
			t.Fatalf("%s: %v %s", expression, err, body.Error)
		}
		return body.Data.Result
	}
}
