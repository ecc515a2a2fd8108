package jobs

import (
	"encoding/json"
	"time"
)

// ScheduleState is what the store keeps of one schedule entry.
type ScheduleState struct {
	Name string
	// Since is when the entry was first seen, continued or changed: ticks
	// before it are nobody's.
	Since time.Time
	// LastTick is the newest tick that was enqueued or given up.
	LastTick time.Time
	Paused   bool
	// Cron and Data are what a person put in place of the timetable's; empty
	// where nobody did.
	Cron string
	Data json.RawMessage
	// Last is the entry's newest row in the history.
	Last *TickRecord
}
