package config

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule says which jobs the clock enqueues. The timetable that comes with
// the service stands in cmd/cmsjobs/timetable.go; entries here change an entry
// of it by its name, or add one.
type Schedule struct {
	Enabled bool                     `koanf:"enabled"`
	Zone    string                   `koanf:"zone"`
	CatchUp time.Duration            `koanf:"catch_up"`
	Entries map[string]ScheduleEntry `koanf:"entries"`
}

// ScheduleEntry is one line of the timetable. Empty fields leave what the
// timetable says.
type ScheduleEntry struct {
	Cron    string         `koanf:"cron"`
	Type    string         `koanf:"type"`
	Queue   string         `koanf:"queue"`
	Payload map[string]any `koanf:"payload"`
	Enabled *bool          `koanf:"enabled"`
	Policy  string         `koanf:"policy"` // of missed ticks: skip, once, all
	CatchUp time.Duration  `koanf:"catch_up"`
	Limit   int            `koanf:"limit"`  // of missed ticks under policy all
	Window  string         `koanf:"window"` // 01:00-05:00
	Ping    Secret         `koanf:"ping"`   // called after each success
}

func defaultSchedule() Schedule {
	return Schedule{Enabled: true, CatchUp: time.Hour, Entries: map[string]ScheduleEntry{}}
}

var windowForm = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-4]):[0-5]\d$`)

func (s Schedule) check(r *report) {
	r.zone("schedule/zone", s.Zone)
	r.atLeastFor("schedule/catch_up", s.CatchUp, 0)
	for name, e := range s.Entries {
		path := "schedule/entries/" + name + slash
		if e.Cron != "" {
			if _, err := cron.ParseStandard(e.Cron); err != nil {
				r.add(path+"cron", "%q is no cron expression: %v", e.Cron, err)
			}
		}
		if e.Policy != "" {
			r.oneOf(path+"policy", e.Policy, "skip", "once", "all")
		}
		if e.Window != "" && !windowForm.MatchString(e.Window) {
			r.add(path+"window", "%q is not like 01:00-05:00", e.Window)
		}
		if _, err := json.Marshal(e.Payload); err != nil {
			r.add(path+"payload", "it cannot be written as JSON: %v", err)
		}
		r.atLeastFor(path+"catch_up", e.CatchUp, 0)
		r.atLeast(path+"limit", e.Limit, 0)
		r.pingURL(path+"ping", e.Ping)
	}
}
