package analytics

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// readLog is a log in a file, of which is counted what is read.
type readLog struct {
	*strings.Reader
	read int64
}

func (r *readLog) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += int64(n)
	return n, err
}

// longLog has n lines of 1 KiB, ten a second: two equal views of two visitors, and
// pictures, which are no views.
func longLog(n int, page string) string {
	var b strings.Builder
	for i := range n {
		at := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC).Add(time.Duration(i/10) * time.Second)
		path := fmt.Sprintf("/%s/%d", page, i/10)
		if i%10 > 1 {
			path = "/storage/a.jpg"
		}
		fmt.Fprintf(&b, `203.0.113.%d - - [%s] "GET %s HTTP/1.1" 200 512 "-" "%s %s"`+"\n", i%2+1,
			at.Format("02/Jan/2006:15:04:05 -0700"), path, firefox, strings.Repeat("x", 800))
	}
	return b.String()
}

func TestALogIsReadOnFromWhereItWasRead(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		const lines, n = 6000, 1200 // 5.5 MiB
		log := longLog(lines, "a")
		half := log[:strings.Index(log[len(log)/2:], "\n")+len(log)/2+1]
		imported := func(what, text string, again bool) (Imported, int64) {
			t.Helper()
			r := &readLog{Reader: strings.NewReader(text)}
			done, err := h.Import(context.Background(), Log{Name: what, Host: "example.com", Again: again}, r, nil)
			if err != nil {
				t.Fatal(what, ": ", err)
			}
			return done, r.read
		}
		rows := func(what string, want int) {
			t.Helper()
			if got := h.countRows(t); got != want {
				t.Errorf("%s: %d rows, want %d", what, got, want)
			}
		}
		imported("half of it", half, false)
		rows("half of it", strings.Count(half, " /a/"))
		if done, read := imported("the log grew", log, false); done.Before == 0 || read > int64(len(log)-len(half))+
			3*overlap {
			t.Errorf("it grew: %d of %d bytes are read, %+v", read, len(log), done)
		}
		rows("it grew", n)
		h.forgetSalts(t)
		for _, what := range []string{"the same", "once more"} {
			if done, read := imported(what, log, false); done.Views != 0 || read > 3*overlap {
				t.Errorf("%s: %d of %d bytes are read, %+v", what, read, len(log), done)
			}
		}
		if done, _ := imported("compressed", gzipped(t, log), false); done.Views != 0 || done.Before == 0 {
			t.Errorf("compressed: %+v", done)
		}
		if done, _ := imported("a shorter copy", half, false); done.Views != 0 {
			t.Errorf("a shorter copy: %+v", done)
		}
		if _, read := imported("the longer one after the shorter", log, false); read > 3*overlap {
			t.Errorf("after a shorter copy %d bytes are read", read)
		}
		rows("the copies", n)
		if done, read := imported("again", log, true); done.Before != 0 || done.Already != n || read < int64(len(log)) {
			t.Errorf("again: %d bytes, %+v", read, done)
		}
		// Another log that begins in the same way: nothing of it is passed over.
		other := half + longLog(3*lines/4, "b")
		if done, _ := imported("another log", other, false); done.Views != 3*n/4 {
			t.Errorf("another log: %+v", done)
		}
		rows("another log", n+3*n/4)
	})
}

// A later import that keeps views for longer reads what was too old before.
func TestWhatWasTooOldIsReadWhenViewsAreKeptForLonger(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	log := longLog(4000, "a")
	h.KeepRaw = time.Hour
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	h.Now = func() time.Time { return now }
	imported := func() Imported {
		t.Helper()
		done, err := h.Import(context.Background(), Log{Name: "log", Host: "example.com"}, strings.NewReader(log), nil)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := imported(); done.TooOld == 0 || done.Views != 0 {
		t.Errorf("%+v", done)
	}
	now = now.Add(time.Minute)
	if done := imported(); done.Before == 0 {
		t.Errorf("it is read as a whole: %+v", done)
	}
	h.KeepRaw = 0
	if done := imported(); done.Before != 0 || done.Views != 800 {
		t.Errorf("what was too old is not read: %+v", done)
	}
}

// What cannot be sought in is read as a whole, and a short log has no position.
func TestAPipeIsReadAsAWhole(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	log := longLog(4000, "a")
	for range 2 {
		done, err := h.Import(context.Background(), Log{Name: "-", Host: "example.com"},
			io.MultiReader(strings.NewReader(log)), nil)
		if err != nil || done.Before != 0 || done.Lines != 4000 {
			t.Errorf("%+v, %v", done, err)
		}
	}
	importLog(t, h, "short", longLog(100, "b"))
	var positions int
	if err := h.DB.Get(&positions, "SELECT COUNT(*) FROM cmsjobs_analytics_imports"); err != nil || positions != 1 {
		t.Errorf("%d positions, %v", positions, err)
	}
}
