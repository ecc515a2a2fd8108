package backup

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestTheMonitorTellsWhatToWorryAbout(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	var told []Watched
	s.c.Watched = func(_ context.Context, w Watched) { told = append(told, w) }
	h := s.handler(t)
	r := jobs.NewRegistry()
	h.Register(r)
	entry, _ := r.Lookup(Monitor.Name)
	look := func(data string) Watched {
		t.Helper()
		if err := entry.Run(jobs.WithRun(t.Context(), jobs.NewRun(s.clock.Now)), jobs.Job{Type: Monitor.Name, Data: json.RawMessage(data)}); err != nil {
			t.Fatal(err)
		}
		return told[len(told)-1]
	}
	if text := look(`{}`).Text(); !strings.Contains(text, "there is no complete backup at local") || !strings.Contains(text, "no backup was ever verified by a restore") {
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
	if got := *d.Digest; got.Complete != 1 || got.Partial != 1 || got.Failed != 0 || got.Verifications != 1 || got.Stored != 3 || got.Bytes == 0 {
		t.Errorf("%+v", got)
	}
	if text := d.Text(); !strings.Contains(text, "1 complete backup, 1 partial") || !strings.Contains(text, "last verified restore") || !strings.Contains(text, "Warning: the last backup is partial") {
		t.Errorf("%q", text)
	}
	if w := (Watched{}); w.Text() != "" {
		t.Errorf("nothing to say is %q", w.Text())
	}
}

func TestHealthSeesSizes(t *testing.T) {
	limits := HealthLimits{}.withDefaults()
	at := func(size, rows int64, tables ...string) Stored {
		b := Stored{ManifestFile: ManifestFile{Header: Header{Started: time.Unix(1e9, 0)}, Status: Complete, Size: size, Rows: rows}}
		for _, name := range tables {
			b.Tables = append(b.Tables, TableFigure{Name: name})
		}
		return b
	}
	for want, pair := range map[string][2]Stored{
		"":       {at(5000, 10, "a"), at(6000, 9, "a", "b")},
		"small":  {at(900, 10), at(900, 10)},
		"shrunk": {at(5000, 10), at(2400, 10)},
		"grown":  {at(5000, 10), at(15001, 10)},
		"rows":   {at(5000, 10), at(5000, 4)},
		"table":  {at(5000, 10, "a", "b"), at(5000, 10, "a")},
	} {
		s := Health{Checked: time.Unix(1e9+60, 0)}
		limits.small(&s, "local", pair[1])
		limits.compare(&s, "local", pair[0], pair[1])
		var codes []string
		for _, w := range s.Warnings {
			codes = append(codes, w.Code)
		}
		if !slices.Equal(codes, strings.Fields(want)) {
			t.Errorf("want %q, got %v", want, codes)
		}
	}
}
