package main

import (
	"slices"
	"strings"
	"testing"
)

// filled are results with these rates of 1, 4 and 16 processes; each job costs cost, and
// a tenth more at 4 processes.
func filled(server, who string, cost float64, rates ...float64) *results {
	r := &results{}
	for i, rate := range rates {
		n := []int{1, 4, 16}[i]
		r.add(server, who, n, figures{rate: rate, server: cost * float64(9+n) / 20, client: cost * float64(9+n) / 20})
	}
	return r
}

func judged(t *testing.T, all ...*results) map[string][]string {
	t.Helper()
	var whole results
	for _, r := range all {
		whole.series = append(whole.series, r.series...)
		whole.limits = append(whole.limits, r.limits...)
	}
	rows := map[string][]string{}
	for _, a := range whole.aims() {
		cells := a.Cells()
		if rows[cells[0]] != nil {
			t.Errorf("%q is judged twice", cells[0])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

// Each line of the aims is judged by the worst number of processes, and left out where a
// figure of it is missing.
func TestAimsOfTheFleetAreMetOrMissed(t *testing.T) {
	got := judged(t,
		filled("MariaDB", "1 slot, nothing ahead", 100, 1000, 3000, 1500),
		filled("MariaDB", "8 slots, 16 ahead", 100, 11000, 12500, 12100),
		filled("MariaDB", laravelName, 100, 100, 250, 600),
		filled("PostgreSQL", "1 slot, 16 ahead", 100, 1000, 900),
		filled("PostgreSQL", "River", 100, 100, 20),
		&results{limits: []limit{
			{server: "SQLite", contest: contest{name: "default as shipped", rows: 16}, loop: figures{rate: 1000},
				ours: figures{rate: 790}},
			{server: "MySQL", contest: contest{name: "1 slot, nothing ahead", rows: 1}, loop: figures{rate: 1000},
				ours: figures{rate: 800}},
			{server: "MySQL", contest: contest{name: shipped, rows: 16}, loop: figures{rate: 4000},
				ours: figures{rate: 2000}},
			{server: "MariaDB", contest: contest{name: "1 slot, nothing ahead", rows: 1}},
		}})
	const cost, flat = ": processor time a job, ", ": jobs a second, the slowest number of processes : the fastest"
	const beside = " : Laravel, jobs a second, at every number of processes (least at 16)"
	const strict, ahead, few = "MariaDB, 1 slot, nothing ahead", "MariaDB, 8 slots, 16 ahead",
		"PostgreSQL, 1 slot, 16 ahead"
	want := map[string][]string{
		strict + cost + "16 processes : 1": {"2.50", "≤ 1.7", "missed"},
		strict + flat:                      {"0.33", "≥ 0.7", "missed"},
		strict + beside:                    {"2.50", "≥ 6", "missed"},
		ahead + cost + "16 processes : 1":  {"2.50", "≤ 1.7", "missed"},
		ahead + flat:                       {"0.88", "≥ 0.7", "met"},
		ahead + beside:                     {"20.17", "≥ 20", "met"},
		few + cost + "4 processes : 1":     {"1.30", "≤ 1.7", "met"},
		few + flat:                         {"0.90", "≥ 0.7", "met"},
		"MariaDB, 16 processes of 8 slots, 16 ahead: jobs a second":     {"12100.00", "≥ 12000", "met"},
		"SQLite, default as shipped : bare loop, 16 rows a transaction": {"0.79", "≥ 0.8", "missed"},
		"MySQL, 1 slot, nothing ahead : bare loop, 1 row a transaction": {"0.80", "≥ 0.8", "met"},
		"MySQL, default as shipped : bare loop, 16 rows a transaction":  {"0.50", "≥ 0.8", "missed"},
		"MySQL, default as shipped : bare loop, 1 row a transaction":    {"2.00", "≥ 0.8", "met"},
	}
	for name, cells := range want {
		if !slices.Equal(got[name], cells) {
			t.Errorf("%s: %q, want %q", name, got[name], cells)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("aims without their figures: %q", got)
	}
}

// The report says what was not measured, and how the peers were set up.
func TestTheReportSaysHowPeersWereSetUp(t *testing.T) {
	o := &options{jobs: 100, processes: []int{1}, slots: []int{1}, prefetch: 16, short: true, peers: "all"}
	r := filled("PostgreSQL", "River", 10, 30_000)
	r.settings = append(r.settings, chosen{"River", 1, "MaxWorkers 1000"})
	r.absent = []string{"graphile-worker is not installed here"}
	text := o.report("today", r)
	for _, want := range []string{"Not measured: graphile-worker is not installed here",
		"30000 · 5+5 · MaxWorkers 1000", "A short run", "FetchCooldown"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}
