package phprows

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
)

func TestNothingIsClaimedFromAPausedQueue(t *testing.T) {
	each(t, func(f *fixture) {
		f.push("default", payload("A", ""))
		f.exec("INSERT INTO cmsjobs_paused (queue, at, by_whom) VALUES ('default', 1, 'someone'), ('other', 1, 'someone')")
		if list := f.claim(5); len(list) != 0 || f.count("jobs WHERE reserved_at IS NOT NULL") != 0 {
			t.Errorf("%d jobs were claimed", len(list))
		}
		f.exec("DELETE FROM cmsjobs_paused WHERE queue = 'default'")
		if list := f.claim(5); len(list) != 1 {
			t.Errorf("%d jobs were claimed after the pause", len(list))
		}
	})
}

// The history keeps of a job of PHP's what it was about, and that it was PHP's.
func TestTheHistoryKeepsTags(t *testing.T) {
	f := newFixture(t, jobstest.SQLite, false)
	f.push("default", `{"uuid":"u-1","displayName":"A","job":"x@call","tags":["post:1"],"data":{"commandName":"A",`+
		`"command":"O:1:\"A\":0:{}"}}`)
	end := f.claim(1)
	f.settle(php.End{Job: end[0], Outcome: php.Deleted})
	var data, metadata string
	if err := f.db.QueryRow("SELECT data, metadata FROM cmsjobs_runs").Scan(&data, &metadata); err != nil {
		t.Fatal(err)
	}
	if data != `{"tags":["post:1"]}` || metadata != phpjob.Mark {
		t.Errorf("%s %s", data, metadata)
	}
}
