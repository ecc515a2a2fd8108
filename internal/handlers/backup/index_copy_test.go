package backup

import (
	"bytes"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// A server without an index reads what the installation left at the destination: one
// object, not one for each backup. What that says of a changed manifest file is not
// believed, nor what a stranger wrote.
func TestAFirstListReadsTheCatalog(t *testing.T) {
	const n = 2000
	s := newSite(t, jobstest.SQLite)
	far := &farStore{delay: time.Millisecond, held: map[string][]byte{}, born: s.clock.now.AddDate(0, -1, 0)}
	s.c.Destinations = map[string]storage.Store{"far": far}
	s.c.Options.Retention = retention.Rules{Keep: n, MinAge: 1 << 62}
	h := s.handler(t)
	far.fill(t, s, h, n)
	if gone, err := h.Prune(t.Context()); err != nil || len(gone) != 0 {
		t.Fatalf("%d are pruned, %v", len(gone), err)
	}
	first := func(h *Handler, reads int64) []catalog.Stored {
		t.Helper()
		s.MustExec("DELETE FROM cmsjobs_backup_index")
		far.opens.Store(0)
		all, err := h.List(t.Context(), "")
		if err != nil || len(all) != n || far.opens.Load() != reads {
			t.Fatalf("%d backups with %d reads, want %d; %v", len(all), far.opens.Load(), reads, err)
		}
		return all
	}
	if b := first(h, 1)[7]; b.TableCount != 120 || b.Origin != manifest.Own || b.Verification == nil {
		t.Errorf("%+v", b)
	}
	far.opens.Store(0)
	if _, err := h.List(t.Context(), ""); err != nil || far.opens.Load() != 0 {
		t.Errorf("the next list makes %d reads, %v", far.opens.Load(), err)
	}

	key := "backup-b000042.json"
	far.held[key] = bytes.Replace(far.held[key], []byte(`"rows":0`), []byte(`"rows":7`), 1)
	if all := first(h, 2); all[42].Origin != manifest.Altered || all[43].Origin != manifest.Own {
		t.Errorf("changed: %s, the next one: %s", all[42].Origin, all[43].Origin)
	}

	ours, err := h.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := s.c
	other.DB = newSite(t, jobstest.SQLite).DB
	stranger, err := New(other)
	if err != nil {
		t.Fatal(err)
	}
	far.opens.Store(0)
	if all, err := stranger.List(t.Context(), ""); err != nil || len(all) != n || far.opens.Load() != n+1 ||
		all[0].Origin != manifest.Unknown {
		t.Errorf("a stranger: %d backups with %d reads, %v", len(all), far.opens.Load(), err)
	}
	other.DB = newSite(t, jobstest.SQLite).DB
	other.Options.TrustedKeys = []string{ours.PublicKey()}
	successor, err := New(other)
	if err != nil {
		t.Fatal(err)
	}
	far.opens.Store(0)
	if all, err := successor.List(t.Context(), ""); err != nil || len(all) != n || far.opens.Load() != 2 ||
		all[0].Origin != manifest.Trusted {
		t.Errorf("a new server that trusts the key: %d backups with %d reads, %v", len(all), far.opens.Load(), err)
	}
}

// The copy of the index is written now and then, not with each backup, and is no backup itself.
func TestTheIndexCopyFollows(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	far := &farStore{held: map[string][]byte{}, born: s.clock.now.AddDate(0, -1, 0)}
	s.c.Destinations = map[string]storage.Store{"far": far}
	s.c.Options.Retention = retention.Rules{Keep: 10_000, MinAge: 1 << 62}
	h := s.handler(t)
	written := func(n int) bool {
		t.Helper()
		far.fill(t, s, h, n)
		if _, err := h.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, there := far.held[copyName]
		return there
	}
	if written(copyStep - 1) {
		t.Error("few backups have a copy of the index")
	}
	if !written(copyStep) {
		t.Fatal("many backups have no copy of the index")
	}
	before := far.held[copyName]
	if written(copyStep + 50); !bytes.Equal(before, far.held[copyName]) {
		// born is the same for all, so nothing is newer than the copy
		t.Error("the copy is written again though nothing is newer")
	}
	r := &run{Handler: h, report: catalog.Report{}, request: Request{}}
	h.sweep(t.Context(), r)
	if _, there := far.held[copyName]; !there || len(r.report.Warnings) != 0 {
		t.Errorf("the copy is swept away; %v", r.report.Warnings)
	}
	// All but a few go: the copy is not worth its writing.
	s.c.Options.Retention = retention.Rules{Keep: 7, MinAge: -1}
	delete(far.held, copyName)
	gone, err := s.handler(t).Prune(t.Context())
	if _, there := far.held[copyName]; err != nil || there || len(gone) != copyStep+50-7 {
		t.Errorf("%d pruned, %v, copy: %t", len(gone), err, there)
	}
}
