package terminal_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/terminal"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// busy is a service with one thing of each sort.
func busy() terminal.Figures {
	f := terminal.Figures{Site: "shop.example.com", At: noon, Stats: ops.StatsView{Waiting: 12345, Queued: 12000,
		Delayed: 340, Foreign: 5, Processing: 3, Completed: 1234567, Failed: 79, SuccessRate: 0.9936, Ended: 100,
		OldestMS: 61_000, Queues: []ops.QueueView{{Name: "cmsjobs", Queued: 12000, Processing: 3, OldestMS: 61_000,
			Workers: 2}, {Name: "mail", Delayed: 340, Paused: true}, {Name: "default", Foreign: 5}}},
		Workers: []ops.WorkerView{{Host: "web-1", PID: 4711, Status: "running", Slots: 4, MemoryBytes: 48 << 20,
			Done: 98765, Failed: 7, StartedAt: ago(50 * time.Hour), Running: make([]ops.RunningView, 3)},
			{Host: "web-2", PID: 99, Status: "dead", Slots: 4, StartedAt: ago(time.Hour)}},
		Running: []ops.JobView{{ID: "01a207bd-24d8-722c-b15b-9e5b1228d6f4", Type: "backup.generate", Queue: "cmsjobs",
			Status: "processing", Attempts: 1, MaxAttempts: 3, StartedAt: ago(95 * time.Second), Worker: "web-1:4711",
			Progress: &jobs.Progress{Done: 512, Total: 2048, Note: "MiB"}},
			{ID: "42", Type: "mail.send", Queue: "mail", Status: "processing", Attempts: 2, MaxAttempts: 5,
				StartedAt: ago(300 * time.Millisecond)},
			{ID: "43", Type: "evil\x1b[2J\n\u202ename", Queue: "q", Status: "processing", StartedAt: ago(time.Second),
				Progress: &jobs.Progress{Done: 7, Note: "of many\x07"}}},
		Failures: []ops.FailureGroupView{{Type: "mail.send", Count: 61, LastSeen: ago(9 * time.Minute),
			Message: "dial tcp 10.0.0.9:25: connection refused"},
			{Type: "media.processImage", Count: 18, LastSeen: ago(30 * time.Hour), Message: "the picture is no picture"}},
		Schedules: []ops.ScheduleView{{Name: "backup.generate", Cron: "0 3 * * *", Next: []time.Time{noon.Add(15 * time.Hour)},
			Last: &ops.TickView{Outcome: "completed"}}, {Name: "links.check", Cron: "30 12 * * *",
			Next: []time.Time{noon.Add(30 * time.Minute)}, Last: &ops.TickView{Outcome: "failed"}},
			{Name: "paused", Paused: true, Next: []time.Time{noon}}},
		Conditions: []terminal.Condition{{Name: "circuit_open", Severity: "warning", Title: "A circuit breaker is open",
			Detail: "smtp:mail", Since: ago(20 * time.Minute), Fix: "Repair the dependency."},
			{Name: "no_backup", Severity: "failing", Title: "There is no fresh backup", Fix: "Run cmsjobs backup create."}},
	}
	for _, name := range []string{"completed", "retried", "failed"} {
		c := terminal.Counts{Name: name}
		for i := range 60 {
			c.Counts = append(c.Counts, int64(map[string]int{"completed": i * i / 9, "retried": i % 3, "failed": i / 59}[name]))
		}
		f.Hour.Series = append(f.Hour.Series, c)
	}
	f.Hour.Wait.All.Attempts, f.Hour.Wait.All.P95 = 100, 120
	return f
}

func view(width, height int) terminal.View {
	return terminal.View{Width: width, Height: height, Now: noon.Add(2 * time.Second), At: noon}
}

func TestTheFramesLookAsTheyDid(t *testing.T) {
	paused, cut, coloured := view(110, 40), view(110, 40), view(110, 40)
	paused.Paused, coloured.Colour = true, true
	cut.Err = fmt.Errorf("dial tcp 127.0.0.1:3306: connection refused")
	for name, frame := range map[string]string{
		"top": terminal.Top(busy(), view(110, 40)), "top-small": terminal.Top(busy(), view(80, 24)),
		"top-empty":  terminal.Top(terminal.Figures{}, view(80, 24)),
		"top-paused": terminal.Top(busy(), paused), "top-no-answer": terminal.Top(busy(), cut),
		"top-colour": terminal.Top(busy(), coloured),
		"jobs":       terminal.Newest(newest(), view(110, 16)), "jobs-empty": terminal.Newest(nil, view(80, 10)),
		"job":       terminal.OneJob(oneJob("processing", 30), view(90, 16)),
		"job-ended": terminal.OneJob(oneJob("failed", 2), view(90, 16)),
	} {
		testgolden.Check(t, "testdata/"+name+".golden", []byte(frame+"\n"))
	}
}

// TestAFrameIsAsLargeAsItsTerminal holds for every size, and no control character gets in.
func TestAFrameIsAsLargeAsItsTerminal(t *testing.T) {
	for width := 1; width <= 200; width += 7 {
		for height := 1; height <= 60; height += 5 {
			for name, frame := range map[string]string{"top": terminal.Top(busy(), view(width, height)),
				"jobs": terminal.Newest(newest(), view(width, height)),
				"job":  terminal.OneJob(oneJob("processing", 100), view(width, height))} {
				rows := strings.Split(frame, "\n")
				if len(rows) != height {
					t.Fatalf("%s at %d×%d has %d rows", name, width, height, len(rows))
				}
				for _, row := range rows {
					if runewidth.StringWidth(row) > width {
						t.Fatalf("%s at %d×%d has a row of %d: %q", name, width, height, runewidth.StringWidth(row), row)
					}
					if strings.ContainsAny(row, "\x1b\x07\r\t\u202e") {
						t.Fatalf("%s lets a control character through: %q", name, row)
					}
				}
			}
		}
	}
	colours := regexp.MustCompile("\x1b\\[[0-9]+m")
	v := view(110, 40)
	v.Colour = true
	ends := regexp.MustCompile(`(?m) +$`)
	if got := ends.ReplaceAllString(colours.ReplaceAllString(terminal.Top(busy(), v), ""), ""); got != terminal.Top(busy(), view(110, 40)) ||
		got == terminal.Top(busy(), v) {
		t.Error("colours change more than colours")
	}
}

func newest() []ops.JobView {
	return []ops.JobView{
		{ID: "45", Type: "mail.send", Queue: "mail", Status: "queued", Detail: "delayed", EnqueuedAt: ago(time.Second)},
		busy().Running[0],
		{ID: "44", Type: "cache.clear", Queue: "cmsjobs", Status: "failed", Attempts: 3, MaxAttempts: 3, EndedAt: ago(
			time.Minute), DurationMS: 1500, Error: "no\nroute"},
		{ID: "43", Type: "cache.clear", Queue: "cmsjobs", Status: "completed", Attempts: 1, EndedAt: ago(time.Hour),
			DurationMS: 15}}
}

func oneJob(status string, lines int) terminal.JobFigures {
	f := terminal.JobFigures{Job: busy().Running[0]}
	if f.Job.Status = status; f.Ended() {
		f.Job.EndedAt, f.Job.DurationMS, f.Job.Error = noon, 95_000, "no destination is available"
	}
	for i := range lines {
		f.Lines = append(f.Lines, jobs.LogLine{At: ago(time.Duration(lines-i) * time.Second), Text: fmt.Sprintf(
			"table %d of %d\x1b[31m", i+1, lines)})
	}
	return f
}

func TestLinesSayWhatIsNew(t *testing.T) {
	now, before := newest(), newest()[1:]
	if got := terminal.NewestLines(now, nil); len(got) != 4 || !strings.Contains(got[0], "cache.clear  completed  15ms") {
		t.Errorf("%q", got)
	}
	if got := terminal.NewestLines(now, &before); len(got) != 1 || got[0] != "11:59:59  45  mail.send  queued (delayed)" {
		t.Errorf("%q", got)
	}
	if got := terminal.NewestLines(now, &now); len(got) != 0 {
		t.Errorf("%q", got)
	}
	first, second := oneJob("processing", 2), oneJob("processing", 2)
	second.Lines = append(second.Lines, jobs.LogLine{At: noon, Text: "done"}, jobs.LogLine{At: noon, Text: "done"})
	if got := terminal.OneJobLines(second, &first); fmt.Sprint(got) != "[12:00:00  done 12:00:00  done]" {
		t.Errorf("%q", got)
	}
	third := second
	third.Lines = append([]jobs.LogLine{}, second.Lines[1:]...) // the log lost its oldest line
	third.Lines = append(third.Lines, jobs.LogLine{At: noon, Text: "done"})
	if got := terminal.LogLines(third, &second); len(got) != 1 {
		t.Errorf("%q", got)
	}
	ended := oneJob("failed", 2)
	if got := terminal.OneJobLines(ended, &first); len(got) != 1 || !strings.Contains(got[0], "failed") {
		t.Errorf("%q", got)
	}
	if got := terminal.TopLines(busy(), nil); len(got) != 1 || !strings.Contains(got[0], "Waiting 12,345") ||
		!strings.Contains(got[0], "failing: no_backup") {
		t.Errorf("%q", got)
	}
}
