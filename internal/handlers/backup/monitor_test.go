package backup

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestTheMonitorTellsWhatToWorryAbout(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	var told []health.Watched
	s.c.Watched = func(_ context.Context, w health.Watched) { told = append(told, w) }
	h := s.handler(t)
	r := jobs.NewRegistry()
	h.Register(r)
	entry, _ := r.Lookup(Monitor.Name)
	look := func(data string) health.Watched {
		t.Helper()
		if err := entry.Run(jobs.WithRun(t.Context(), jobs.NewRun(s.clock.Now)),
			jobs.Job{Type: Monitor.Name, Data: json.RawMessage(data)}); err != nil {
			t.Fatal(err)
		}
		return told[len(told)-1]
	}
	if text := look(`{}`).Text(); !strings.Contains(text, "there is no complete backup at local") ||
		!strings.Contains(text, "no backup was ever verified by a restore") {
		t.Errorf("%q", text)
	}
	s.backup(t, h)
	s.clock.now = s.clock.now.Add(8 * 24 * time.Hour)
	s.backup(t, h)
	h.c.DSN = "file:/nowhere/at/all.sqlite"
	s.clock.now = s.clock.now.Add(time.Hour)
	if _, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil); err == nil {
		t.Fatal("a database that is not there is backed up")
	}
	d := look(`{"digest":true}`)
	if got := *d.Digest; got.Complete != 1 || got.Partial != 1 || got.Failed != 0 || got.Verifications != 1 ||
		got.Stored != 3 || got.Bytes == 0 {
		t.Errorf("%+v", got)
	}
	if text := d.Text(); !strings.Contains(text, "1 complete backup, 1 partial") ||
		!strings.Contains(text, "last verified restore") ||
		!strings.Contains(text, "Warning: the last backup is partial") {
		t.Errorf("%q", text)
	}
	if w := (health.Watched{}); w.Text() != "" {
		t.Errorf("nothing to say is %q", w.Text())
	}
}
