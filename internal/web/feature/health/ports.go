package health

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// Ports are what is measured.
type Ports struct {
	// Ready are asked by /readyz.
	Ready []Check
	// Workers are counted by metrics; nil counts none.
	Workers Workers
	// Conditions are measured when they are asked for, at most every few seconds;
	// ConditionNames are all that there are.
	Conditions     func(context.Context) []web.Condition
	ConditionNames []string
	// Figures are those that metrics take from the database; nil has none.
	Figures func(context.Context) (StoredFigures, error)
}

// Workers lists workers.
type Workers interface {
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
}

// Check is one thing that must be right for the service to be ready.
type Check struct {
	Name string
	Do   func(context.Context) error
}

type handlers struct{ Ports }

// StoredFigures are what metrics read from the database, so that they survive
// a restart.
type StoredFigures struct {
	// Workers are the live ones, Schedulers those that went through the
	// timetable lately.
	Workers, Schedulers int
	// Circuits say of each dependency that ever failed whether its circuit
	// breaker is open.
	Circuits map[string]bool
	// Successes are when the jobs of schedule entries last completed; zero for
	// one that has ticks and no success.
	Successes map[string]time.Time
	// Backups says that backups are made here; BackedUp and Verified are zero
	// where there was none.
	Backups            bool
	BackedUp, Verified time.Time
	BackupBytes        int64
	VerificationFailed bool // the newest verification
}
