package php

import (
	"os"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func TestAJournalSaysWhatWasNotHandedOut(t *testing.T) {
	dir := t.TempDir()
	j, err := openJournal(dir, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []error{
		j.add([]jobs.Lease{{ID: 1, Attempt: 1, ReservedAt: 5}, {ID: 2, Attempt: 3, ReservedAt: 5}}), j.close(1),
		j.close(7),
		j.hand(2, 77), j.hand(1, 78),
		j.renewed([]jobs.Lease{{ID: 1, Attempt: 1, ReservedAt: 9}, {}, {ID: 2, Attempt: 3, ReservedAt: 9}})} {
		if step != nil {
			t.Fatal(step)
		}
	}
	data, err := os.ReadFile(j.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	open := readJournal(append(data, recordAhead, 0)) // the last record was cut off
	if want := (pending{jobs.Lease{ID: 2, Attempt: 3, ReservedAt: 9}, 77}); len(open) != 1 || open[2] != want {
		t.Errorf("the journal says %+v", open)
	}
	f, err := os.Open(j.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if lockFile(f) == nil {
		t.Error("the journal of a living pool is taken")
	}
	if err := j.remove(); err != nil {
		t.Fatal(err)
	}
	if lockFile(f) != nil {
		t.Error("the journal of a pool that has ended is locked")
	}
}

func FuzzJournal(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, recordAhead, jobs.Lease{ID: 1, Attempt: 2, ReservedAt: 3}), recordClosed,
		jobs.Lease{ID: 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for id, l := range readJournal(data) {
			if l.ID != id {
				t.Errorf("%d is %+v", id, l)
			}
		}
	})
}
