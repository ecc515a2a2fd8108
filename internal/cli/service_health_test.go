package cli

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// systemd is the socket on which a unit says how it is.
type systemd struct {
	t    *testing.T
	said chan string
	path string
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := &systemd{t, make(chan string, 10_000), path}
	go func() { // at once, as systemd does: the kernel keeps ten words only
		buffer := make([]byte, 1024)
		for {
			n, err := c.Read(buffer)
			if err != nil {
				return // closed
			}
			s.said <- strings.TrimSpace(string(buffer[:n]))
		}
	}()
	return s
}

// hears waits for a word.
func (s *systemd) hears(word string) {
	s.t.Helper()
	late := time.After(time.Minute)
	for said := ""; said != word; {
		select {
		case said = <-s.said:
		case <-late:
			s.t.Fatalf("systemd does not hear %s", word)
		}
	}
}

// TestSystemdAndDockerHearHowTheServiceIs starts the program as systemd does,
// with a socket and a watchdog, and asks as Docker does.
func TestSystemdAndDockerHearHowTheServiceIs(t *testing.T) {
	t.Parallel()
	unit := newSystemd(t)
	s := newService(t, "schedule: {enabled: false}\n", newDatabase(t, jobstest.SQLite, tables.Stock))
	s.env = append(s.env, "NOTIFY_SOCKET="+unit.path, "WATCHDOG_USEC=600000")
	s.start()
	unit.hears("READY=1")
	unit.hears("WATCHDOG=1")
	unit.hears("WATCHDOG=1")
	address := strings.TrimPrefix(s.url, "http://")
	if out := s.command("--set", "http.listen="+address, "health"); !strings.Contains(out, "ready") {
		t.Errorf("health says %q", out)
	}
	s.stop()
	unit.hears("STOPPING=1")
	c := exec.Command(s.cmd.Path, s.flags[0], "--set", "http.listen="+address, "health")
	c.Env = s.env
	if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != exitFault {
		t.Errorf("the health of a service that is gone: %v %s", err, out)
	}
}

// TestAServiceWithoutHTTPIsReadyToo fails when the web alone tells systemd: a
// unit of Type=notify would be killed after its start's time.
func TestAServiceWithoutHTTPIsReadyToo(t *testing.T) {
	t.Parallel()
	unit := newSystemd(t)
	s := newService(t, "http: {enabled: false}\nschedule: {enabled: false}\n",
		newDatabase(t, jobstest.SQLite, tables.Stock))
	s.env = append(s.env, "NOTIFY_SOCKET="+unit.path)
	s.launch()
	unit.hears("READY=1")
	if out := s.command("health", "--json"); strings.Join(strings.Fields(out), "") != `{"ready":true}` {
		t.Errorf("health --json says %q", out)
	}
	if out := s.command("health"); out != "ready\n" { // measures by itself
		t.Errorf("health says %q", out)
	}
	s.stop()
	unit.hears("STOPPING=1")
}

// TestDisabledJobsRunWhileTheCallerWaits is JOBS_ENABLED=false, over HTTP.
func TestDisabledJobsRunWhileTheCallerWaits(t *testing.T) {
	t.Parallel()
	s := newService(t, "", newDatabase(t, jobstest.SQLite, tables.Stock))
	s.env = append(s.env, "JOBS_ENABLED=false")
	s.start()
	admin := bearer(s.token("admin"))
	type answer struct {
		Status string
		Result struct{ Attempt int }
		Error  string `json:"error"`
	}
	var well, ill answer
	s.ask(200, "POST", "/api/v1/jobs", `{"type":"cmsjobs.probe"}`, admin, &well)
	s.ask(200, "POST", "/api/v1/jobs", `{"type":"cmsjobs.probe","payload":{"fail":"no luck"}}`, admin, &ill)
	if well.Status != "completed" || well.Result.Attempt != 1 || ill.Status != "failed" ||
		!strings.Contains(ill.Error, "no luck") {
		t.Errorf("%+v %+v", well, ill)
	}
	s.ask(409, "POST", "/api/v1/jobs/batch", `{"jobs":[{"type":"cmsjobs.probe"}]}`, admin, nil)
	s.ask(422, "POST", "/api/v1/jobs", `{"type":"cmsjobs.probe","delay":60}`, admin, nil)
	var runs struct {
		Items []struct{ Status, Worker string }
	}
	s.ask(200, "GET", "/api/v1/jobs?type=cmsjobs.probe", "", admin, &runs)
	ends := map[string]string{}
	for _, run := range runs.Items {
		ends[run.Status] = run.Worker
	}
	if len(runs.Items) != 2 || ends["completed"] != "at once" || ends["failed"] != "at once" {
		t.Errorf("their runs: %+v", runs.Items)
	}
	var list struct{ Items []any }
	if s.ask(200, "GET", "/api/v1/jobs?status=queued", "", admin, &list); len(list.Items) != 0 {
		t.Errorf("jobs wait for a worker that never comes: %v", list.Items)
	}
}
