package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

func english(t *testing.T) locale.Printer {
	t.Helper()
	texts, err := web.Texts([]web.Feature{Feature(Ports{})})
	if err != nil {
		t.Fatal(err)
	}
	return texts.In("en")
}

var start = time.Date(2026, 11, 23, 22, 11, 59, 0, time.UTC)

// ranAt is a run that began so long after the start, and took two seconds.
func ranAt(attempt int, outcome string, after, wait time.Duration) ops.RunView {
	begin := start.Add(after)
	return ops.RunView{Attempt: attempt, Outcome: outcome, StartedAt: begin, EndedAt: begin.Add(2 * time.Second),
		DurationMS: 2000, WaitMS: wait.Milliseconds(), Error: "connection refused"}
}

// TestAttemptsAreBarsAndSentences follows a job through three starts.
func TestAttemptsAreBarsAndSentences(t *testing.T) {
	lang := english(t)
	runs := []ops.RunView{ranAt(3, "failed", 152*time.Second, 0), ranAt(2, "retried", 32*time.Second, 0),
		ranAt(1, "retried", 12*time.Millisecond, 12*time.Millisecond)}
	rows := attempts(lang, ops.JobView{Status: "failed"}, runs, start.Add(time.Hour))
	var got []string
	for _, r := range rows {
		got = append(got, r.Sentence+", "+r.Last)
	}
	want := "waited 12 ms, ran 2.0 s, backoff 29 s, retried; ran 2.0 s, backoff 118 s, retried; ran 2.0 s, failed, no " +
		"attempts left"
	if strings.Join(got, "; ") != want {
		t.Errorf("%s, want %s", strings.Join(got, "; "), want)
	}
	if !rows[0].SameError || !rows[1].SameError || rows[2].SameError {
		t.Error("an error is shown again that the next attempt had as well")
	}
	drawn := string(attemptsChart(lang, rows))
	for _, part := range []string{`aria-label="3 attempts within 2 min"`, "Attempt 3",
		`<rect class="f-bad" x="413.7" y="76" width="6.0"`, `<rect class="f-wait" x="92.3" y="14" width="64.3"`,
		`<tspan class="t-bad">failed, no attempts left</tspan>`} {
		if !strings.Contains(drawn, part) {
			t.Errorf("no %s in\n%s", part, drawn)
		}
	}
}

// TestAWaitingAndARunningAttempt end at the next start, and now.
func TestAWaitingAndARunningAttempt(t *testing.T) {
	lang := english(t)
	first := []ops.RunView{ranAt(1, "retried", 0, 0)}
	rows := attempts(lang, ops.JobView{Status: "queued", RunAt: start.Add(62 * time.Second)}, first, start.Add(time.Minute))
	if len(rows) != 1 || rows[0].Sentence != "ran 2.0 s, backoff 60 s" {
		t.Errorf("%+v", rows)
	}
	rows = attempts(lang, ops.JobView{Status: "processing", Attempts: 2, StartedAt: start.Add(62 * time.Second)}, first,
		start.Add(65*time.Second))
	if len(rows) != 2 || !rows[1].Running || rows[1].Number != 2 || rows[1].Sentence != "ran 3.0 s" ||
		rows[1].Class != "busy" {
		t.Errorf("%+v", rows)
	}
	if attempts(lang, ops.JobView{Status: "queued"}, nil, start) == nil || attemptsChart(lang, nil) != "" {
		t.Error("a job without attempts has a chart")
	}
}

func TestADiffNamesWhatChanged(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"{|a|b|}", "{|a|b|}", " {| a| b| }"},
		{"{|a|b|}", "{|a|c|}", " {| a|-b|+c| }"},
		{"{|}", "{|x|}", " {|+x| }"},
		{"{|x|y|}", "{|y|}", " {|-x| y| }"},
	} {
		var got []string
		for _, l := range diff(strings.Split(c.a, "|"), strings.Split(c.b, "|")) {
			got = append(got, l.Sign+l.Text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s to %s: %s, want %s", c.a, c.b, strings.Join(got, "|"), c.want)
		}
	}
	if long := strings.Split(strings.Repeat("x\n", diffLines+1), "\n"); diff(long, long) != nil {
		t.Error("texts of any length are compared")
	}
}
