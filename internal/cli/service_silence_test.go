package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestDeadWorkersAreNoticedWithinTwoMinutes kills workers as kill -9 does. The
// calls of the dead man's switch stop, and an alert of the shipped rules fires in
// a real Prometheus. CMSJOBS_SOAK=1 takes the intervals that docs/operating.md
// names; otherwise they are a second, where settings allow it.
func TestDeadWorkersAreNoticedWithinTwoMinutes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a minute")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		jobstest.Skip(t, "apt-get install prometheus: %v", err)
	}
	for _, c := range []struct {
		name, alert string
		all         bool // the process with the page dies, too
		due         bool // a job is due
	}{
		{"the workers, nothing to do", "CmsjobsNoLiveWorker", false, false},
		{"the workers, a job due", "CmsjobsNoWorker", false, true},
		{"the whole service", "CmsjobsDown", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSilence(t, program)
			firing := func(alert string) bool {
				return len(s.ask(fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"}`, alert))) > 0
			}
			await(t, "the monitor is called", func() bool { return s.told.pings() >= 1 })
			await(t, "Prometheus has figures", func() bool { return len(s.ask("cmsjobs_workers == 2")) > 0 })
			if firing(c.alert) {
				t.Fatalf("%s fires while workers live", c.alert)
			}
			killed := time.Now()
			for _, w := range s.workers {
				s.lab.kill(w)
			}
			if c.due {
				call(t, nil, s.lab.flag, "enqueue", "cmsjobs.probe")
			}
			if c.all {
				s.lab.kill(s.lab.web)
			}
			for !firing(c.alert) {
				if time.Since(killed) > 2*time.Minute {
					t.Fatalf("%s does not fire within 2 minutes", c.alert)
				}
				time.Sleep(200 * time.Millisecond)
			}
			fired := time.Since(killed)
			last := s.told.lastPing()
			s.quiet(t, last)
			t.Logf("%s: %s fired after %.0f s, the last call of the monitor came after %.0f s", c.name, c.alert,
				fired.Seconds(), max(last.Sub(killed), 0).Seconds())
		})
	}
}

// silence is a service of three processes, a monitor that it calls, and a
// Prometheus with the shipped rules.
type silence struct {
	lab     *conditionsLab
	told    *listener
	workers []*service
	ask     func(string) []json.RawMessage
	every   time.Duration // of the calls
}

func newSilence(t *testing.T, program string) *silence {
	t.Helper()
	s := &silence{told: newListener(t), every: time.Second}
	scrape, evaluate := time.Second, time.Second
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		scrape, evaluate, s.every = 15*time.Second, 15*time.Second, time.Minute
	}
	s.lab = &conditionsLab{t: t, told: s.told, temporary: t.TempDir(), engine: jobstest.SQLite,
		flag: newDatabase(t, jobstest.SQLite, tables.Stock)}
	s.lab.config = fmt.Sprintf("http: {public_metrics: true}\nschedule: {enabled: false}\nwebhook: {allow_private: "+
		"[127.0.0.0/8]}\nnotify: {mail: false, cms: false}\nconditions: {off: [no_backup], every: %s, ping_url: %q, "+
		"ping_every: %s}\n%%s",
		min(evaluate, 10*time.Second), s.told.URL+"/ping", s.every)
	s.lab.web = s.lab.process("", "CMSJOBS_QUEUE_WORKER=false")
	s.lab.web.start()
	for range 2 {
		w := s.lab.process("", "CMSJOBS_HTTP_ENABLED=false")
		w.launch()
		s.workers = append(s.workers, w)
	}
	rules, err := filepath.Abs("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	s.ask = startPrometheusWith(t, program, fmt.Sprintf("global: {scrape_interval: %s, evaluation_interval: "+
		"%s}\nrule_files: [%q]\nscrape_configs: [{job_name: cmsjobs, static_configs: [{targets: [%q]}]}]\n",
		scrape, evaluate, rules, strings.TrimPrefix(s.lab.web.url, "http://")))
	return s
}

// quiet waits for three intervals in which nothing calls the monitor.
func (s *silence) quiet(t *testing.T, last time.Time) {
	t.Helper()
	for quietUntil := time.Now().Add(3 * s.every); time.Now().Before(quietUntil); time.Sleep(100 * time.Millisecond) {
		if at := s.told.lastPing(); at.After(last) {
			t.Fatalf("the monitor was called after the alert fired")
		}
	}
}
