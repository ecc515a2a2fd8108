package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// calm is a history in which all went well: a webhook that was seen, a probe,
// a mail that is refused, and a job whose INSERT nobody answered.
func calm() history {
	return history{
		asked: map[int]asked{
			1: {kind: "webhook.deliver", due: at(0), acked: true},
			2: {kind: "cmsjobs.probe", due: at(0), acked: true},
			3: {kind: "mail.send", due: at(0), acked: true, want: failed},
			4: {kind: "cmsjobs.probe", due: at(0)},
		},
		seen: []seen{{key: 1, at: at(0.1), accepted: true}, {key: 3, at: at(0.1)}},
		runs: []run{
			{key: 1, attempt: 1, outcome: "completed", started: at(0.1), ended: at(0.2)},
			{key: 2, attempt: 1, outcome: "completed", started: at(0.1), ended: at(0.2)},
			{key: 3, attempt: 1, outcome: "failed", started: at(0.1), ended: at(0.2)},
		},
		waits: map[int]bool{}, failed: map[int]bool{3: true},
		observed: map[string]bool{"webhook.deliver": true, "mail.send": true},
		unsure:   map[string]bool{"mail.send": true}, onlyOnce: map[string]bool{"mail.send": true},
		queueing: map[string]bool{},
		patience: 10 * time.Second,
	}
}

func TestTheJudgeFindsNothingWhereNothingIs(t *testing.T) {
	v := judge(calm())
	if !v.good() || v.Acked != 3 || v.Unknown != 1 || v.Failed != 1 {
		t.Errorf("%+v", v)
	}
}

// Each history has one thing wrong with it, and the judge must say which.
func TestTheJudgeFinds(t *testing.T) {
	kill := fault{name: "worker killed", at: at(0.15), until: at(5)}
	for name, c := range map[string]struct {
		spoil func(*history)
		in    func(report) []string
		says  string // "" where it must say nothing
	}{
		"a job that is gone": {func(h *history) { h.runs = slices.Delete(h.runs, 1, 2) },
			func(v report) []string { return v.Lost }, "cmsjobs.probe 2 is gone"},
		"a job that never left the queue": {
			func(h *history) { h.runs = slices.Delete(h.runs, 1, 2); h.waits[2] = true },
			func(v report) []string { return v.Lost }, "still in the queue"},
		"a job that says it is done, and nobody saw it": {func(h *history) { h.seen = h.seen[1:] },
			func(v report) []string { return v.Lost }, "its effect was never seen"},
		"a lost job, fault or not": {
			func(h *history) { h.runs = slices.Delete(h.runs, 1, 2); h.faults = []fault{kill} },
			func(v report) []string { return v.Lost }, "cmsjobs.probe 2 is gone"},
		"an effect that came twice": {
			func(h *history) { h.seen = append(h.seen, seen{key: 1, at: at(0.12), accepted: true}) },
			func(v report) []string { return v.Doubled }, "webhook.deliver 1 had its effect twice"},
		"an effect that came twice, but a fault lies between": {func(h *history) {
			h.seen = append(h.seen, seen{key: 1, at: at(3), accepted: true})
			h.faults = []fault{kill}
		}, func(v report) []string { return v.Doubled }, ""},
		"a fault that was over before": {func(h *history) {
			h.seen = append(h.seen, seen{key: 1, at: at(0.12), accepted: true})
			h.faults = []fault{{name: "earlier", at: at(-20), until: at(-10)}}
		}, func(v report) []string { return v.Doubled }, "had its effect twice"},
		"an effect that came twice behind a fault that only delays": {func(h *history) {
			h.seen = append(h.seen, seen{key: 1, at: at(3), accepted: true})
			h.faults = []fault{{name: "server read-only", at: at(0.15), until: at(5), delays: true}}
		}, func(v report) []string { return v.Doubled }, "had its effect twice"},
		"an effect that came twice behind another kind's fault": {func(h *history) {
			h.seen = append(h.seen, seen{key: 1, at: at(3), accepted: true})
			h.faults = []fault{{name: "mail server cut off", at: at(0.15), until: at(5), kind: "mail.send"}}
		}, func(v report) []string { return v.Doubled }, "had its effect twice"},
		"a mail that came twice, fault or not": {func(h *history) {
			h.asked[3] = asked{kind: "mail.send", due: at(0), acked: true, want: either}
			h.seen = append(h.seen, seen{key: 3, at: at(0.2), accepted: true}, seen{key: 3, at: at(3), accepted: true})
			h.faults = []fault{kill}
		}, func(v report) []string { return v.Doubled }, "mail.send 3 had its effect twice"},
		"a job that was completed twice": {func(h *history) {
			h.runs = append(h.runs, run{key: 2, attempt: 1, outcome: "completed", started: at(0.2), ended: at(0.3)})
		}, func(v report) []string { return v.Doubled }, "cmsjobs.probe 2 was completed twice"},
		"a start that left no trace": {func(h *history) { h.runs[1].attempt = 2 },
			func(v report) []string { return v.Doubled }, "started before attempt 2"},
		"a crash that nothing caused": {func(h *history) {
			h.runs[1].outcome = "crashed"
			h.runs = append(h.runs, run{key: 2, attempt: 2, outcome: "completed", started: at(8), ended: at(9)})
		}, func(v report) []string { return v.Doubled }, "lost attempt 1 on the way"},
		"a crash that a fault caused": {func(h *history) {
			h.runs[1].outcome, h.faults = "crashed", []fault{kill}
			h.runs = append(h.runs, run{key: 2, attempt: 2, outcome: "completed", started: at(8), ended: at(9)})
		}, func(v report) []string { return v.Doubled }, ""},
		"a retry is no repetition": {func(h *history) {
			h.runs[1].outcome = "retried"
			h.runs = append(h.runs, run{key: 2, attempt: 2, outcome: "completed", started: at(1), ended: at(2)})
		}, func(v report) []string { return v.Doubled }, ""},
		"a run that was released is no repetition": {func(h *history) {
			h.runs[1].outcome = "released"
			h.runs = append(h.runs, run{key: 2, attempt: 1, outcome: "completed", started: at(1), ended: at(2)})
		}, func(v report) []string { return v.Doubled }, ""},
		"an effect that came again after its worker's grace": {func(h *history) {
			h.runs[0] = run{key: 1, attempt: 1, outcome: "released", started: at(0), ended: at(5), toldToStop: true}
			h.runs = append(h.runs, run{key: 1, attempt: 1, outcome: "completed", started: at(5.4), ended: at(6)})
			h.seen = append(h.seen, seen{key: 1, at: at(5.5), accepted: true})
		}, func(v report) []string { return v.Doubled }, ""},
		"an effect that came again, and its worker's grace was another run's": {func(h *history) {
			h.runs[0] = run{key: 1, attempt: 1, outcome: "released", started: at(0.2), ended: at(5), toldToStop: true}
			h.runs = append(h.runs, run{key: 1, attempt: 1, outcome: "completed", started: at(5.4), ended: at(6)})
			h.seen = append(h.seen, seen{key: 1, at: at(5.5), accepted: true})
		}, func(v report) []string { return v.Doubled }, "had its effect twice"},
		"a job that came late": {func(h *history) { h.runs[1].started, h.runs[1].ended = at(30), at(31) },
			func(v report) []string { return v.Late }, "cmsjobs.probe 2 started 30s after it fell due"},
		"a job that came late behind a fault": {func(h *history) {
			h.runs[1].started, h.runs[1].ended = at(30), at(31)
			h.faults = []fault{{name: "server killed", at: at(1), until: at(25)}}
		}, func(v report) []string { return v.Late }, ""},
		"a job that came late behind a fault that delays": {func(h *history) {
			h.runs[1].started, h.runs[1].ended = at(30), at(31)
			h.faults = []fault{{name: "server read-only", at: at(1), until: at(25), delays: true}}
		}, func(v report) []string { return v.Late }, ""},
		"a job that came late behind another kind's fault": {func(h *history) {
			h.runs[1].started, h.runs[1].ended = at(30), at(31)
			h.faults = []fault{{name: "mail server cut off", at: at(1), until: at(25), kind: "mail.send"}}
		}, func(v report) []string { return v.Late }, "cmsjobs.probe 2 started 30s"},
		"a job that waited for a line of a crontab": {func(h *history) {
			a := h.asked[2]
			a.rare = true
			h.asked[2] = a
			h.runs[1].started, h.runs[1].ended = at(30), at(31)
		}, func(v report) []string { return v.Late }, ""},
		"a job that failed for good": {func(h *history) { h.runs[1].outcome, h.failed[2] = "failed", true },
			func(v report) []string { return v.Wrong }, "cmsjobs.probe 2 failed for good"},
		"a refused mail that was completed": {func(h *history) { h.runs[2].outcome = "completed"; delete(h.failed, 3) },
			func(v report) []string { return v.Wrong }, "its other side refused it"},
	} {
		t.Run(name, func(t *testing.T) {
			h := calm()
			c.spoil(&h)
			v := judge(h)
			if c.says == "" {
				if !v.good() {
					t.Errorf("the judge says %+v", v)
				}
				return
			}
			if list := c.in(v); len(list) != 1 || !strings.Contains(list[0], c.says) || v.good() {
				t.Errorf("the judge says %+v, not %q", v, c.says)
			}
		})
	}
}

// The history is written by the database's clock. What was written while that
// was wrong is put right, also where another moment has the same name.
func TestMomentsOfAWrongClockArePutRight(t *testing.T) {
	jumps := []jump{{by: time.Minute, from: at(10), to: at(22)}, {by: -time.Minute, from: at(100), to: at(112)}}
	var runs []run
	var want []time.Time
	for second := 0.5; second < 180; second++ {
		moment := at(second)
		for _, j := range jumps {
			if !at(second).Before(j.from) && at(second).Before(j.to) {
				moment = moment.Add(j.by)
			}
		}
		runs, want = append(runs, run{started: moment.Add(-time.Second), ended: moment}), append(want, at(second))
	}
	trueTimes(runs, jumps)
	for i, r := range runs {
		if !r.ended.Equal(want[i]) || r.ended.Sub(r.started) != time.Second {
			t.Errorf("a run that ended at %s is said to have ended at %s", want[i].Format(clock), r.ended.Format(clock))
		}
	}
}
