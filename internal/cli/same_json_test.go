package cli

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestTheCommandLineAnswersAsTheAPI asks one service for the same things over
// HTTP and by commands: what programs get is the same, byte for byte.
func TestTheCommandLineAnswersAsTheAPI(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, "schedule: {enabled: true}\nqueue: {enabled: true, queues: [nobody]}\nhttp: {mask: "+
		"['*.card']}\n", dsn)
	admin := bearer(s.token("admin"))
	s.command("enqueue", "mail.send",
		`{"to":"a@b.example","subject":"a<b> & c","body":"password=hunter2222","data":{"x_token":"abcdef0123456789"}}`,
		"--delay", "3h")
	s.command("enqueue", "cmsjobs.probe", `{"fail":"the lock is <wrong>"}`, "--queue", "x", "--max-attempts", "1")
	s.command("enqueue", "cmsjobs.probe", `{"fail":"again"}`, "--queue", "x", "--max-attempts", "1")
	s.command("work", "--stop-when-empty", "--queue", "x")
	s.command("enqueue", "mail.send", `{"to":"a@b.example","subject":"Hi","body":"<p>x</p>"}`, "--delay", "2h")
	s.command("pause", "x", "--force")
	failed := answer[struct{ Items []struct{ ID string } }](t, result{out: s.command("--json", "failed", "list")}).
		Items[0].ID

	for command, path := range map[string]string{
		"jobs list":                                "jobs",
		"jobs list --limit 2":                      "jobs?limit=2",
		"jobs list --status failed --since 3d":     "jobs?status=failed&since=3d",
		"jobs list --since 2026-11-21T10:00:00":    "jobs?since=2026-11-21T10:00:00",
		"jobs list --type cmsjobs.probe --queue x": "jobs?type=cmsjobs.probe&queue=x",
		"jobs list --text again":                   "jobs?text=again",
		"jobs list --until 1d":                     "jobs?until=1d",
		"jobs show " + failed:                      "jobs/" + failed,
		"jobs runs " + failed:                      "jobs/" + failed + "/runs",
		"jobs runs":                                "runs",
		"jobs log " + failed:                       "jobs/" + failed + "/log",
		"jobs explain " + failed:                   "jobs/" + failed + "/explain",
		"jobs stats":                               "jobs/stats",
		"failed list":                              "failed",
		"failed groups":                            "failed/groups",
		"queues":                                   "queues",
		"workers":                                  "workers",
		"schedule list":                            "schedules",
		"schedule history cmsjobs.clean":           "schedules/cmsjobs.clean/history",
		"types":                                    "types",
	} {
		var cli, api string
		for range 5 { // a heartbeat, or a second of an age, may lie between the two
			cli = s.command(append([]string{"--json"}, strings.Fields(command)...)...)
			status, body := s.try("GET", "/api/v1/"+path, "", admin)
			if api = string(body); status != 200 {
				t.Fatalf("GET %s: %d %s", path, status, body)
			}
			if cli == api {
				break
			}
		}
		if cli != api {
			t.Errorf("%s\n%sGET /api/v1/%s\n%s", command, cli, path, api)
		}
		if strings.Contains(cli, "hunter2222") || strings.Contains(cli, "abcdef0123456789") {
			t.Errorf("%s shows a secret: %s", command, cli)
		}
	}
	if whole := s.command("--json", "jobs", "list", "--unmasked"); !strings.Contains(whole, "hunter2222") ||
		!strings.Contains(whole, "abcdef0123456789") {
		t.Errorf("--unmasked masks: %s", whole)
	}
	spaced := "/api/v1/jobs?since=" + url.QueryEscape("2026-11-21 10:00:00")
	if status, body := s.try("GET", spaced, "", admin); status != 200 {
		t.Errorf("GET %s: %d %s", spaced, status, body)
	}
}

// TestFiltersAreRefusedAlike gives the command line and the API the same faulty
// filters.
func TestFiltersAreRefusedAlike(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, "schedule: {enabled: false}\n", dsn)
	admin := bearer(s.token("admin"))
	for _, fault := range []struct{ name, value, says string }{
		{"since", "soon", "since must be a time"}, {"since", "-3d", "since must be a time"},
		{"until", "3", "until must be a time"},
		{"status", "lost", "No status is named"},
	} {
		status, body := s.try("GET", "/api/v1/jobs?"+fault.name+"="+fault.value, "", admin)
		if status != 400 || !strings.Contains(string(body), fault.says) {
			t.Errorf("%s=%s: %d %s", fault.name, fault.value, status, body)
		}
		want(t, call(t, nil, dsn, "jobs", "list", "--"+fault.name+"="+fault.value), exitUsage, fault.says)
	}
}

// TestJSONAtATerminalHasLines runs the program under script, which gives it a
// terminal.
func TestJSONAtATerminalHasLines(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("there is no script here")
	}
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, "schedule: {enabled: false}\n", dsn)
	line := strings.Join(append([]string{s.cmd.Path}, append(s.flags, "--json", "jobs", "stats")...), "' '")
	c := exec.Command(script, "-qec", "'"+line+"'", filepath.Join(t.TempDir(), "typescript"))
	c.Env = append(os.Environ(), s.env...)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n  \"queued\": 0") {
		t.Errorf("%v: %s", err, out)
	}
	if plain := s.command("--json", "jobs", "stats"); strings.Count(plain, "\n") != 1 {
		t.Errorf("not one line: %s", plain)
	}
}
