package manifest

import (
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Level says how far a backup is read back.
type Level string

// The levels of a verification, each more than the one before it.
const (
	LevelNone     Level = "none"
	LevelBytes    Level = "bytes"    // the archive has the size and hash that it was given
	LevelParsed   Level = "parsed"   // and every entry its own hash, and the SQL as many rows as were dumped
	LevelRestored Level = "restored" // and a temporary database made of it equals what was dumped
)

// Verification is what reading a backup back from where it lies showed.
type Verification struct {
	Backup      string    `json:"backup"`
	Destination string    `json:"destination"`
	Level       Level     `json:"level"`
	OK          bool      `json:"ok"`
	Started     time.Time `json:"started"`
	Finished    time.Time `json:"finished"`
	Bytes       int64     `json:"bytes"`
	Tables      int       `json:"tables"`
	Rows        int64     `json:"rows"`
	Files       int64     `json:"files"`
	// Unfinished is true when the verification says nothing about the backup: the
	// destination did not answer, or the time ran out.
	Unfinished bool `json:"unfinished,omitempty"`
	// Denied says that the account has no right to make the temporary database that
	// a restore needs; the level is then parsed.
	Denied bool `json:"denied,omitempty"`
	// Note says why the verification went less far than it was to.
	Note string `json:"note,omitempty"`
	// Problems are what is wrong, the first ones.
	Problems []string `json:"problems,omitempty"`
}

// VerificationSummary is what a manifest file and a list say of a verification.
type VerificationSummary struct {
	Level Level     `json:"level"`
	OK    bool      `json:"ok"`
	At    time.Time `json:"at"`
	// Problem is the first thing that is wrong.
	Problem string `json:"problem,omitempty"`
}

func (p Verification) Summary() *VerificationSummary {
	s := &VerificationSummary{Level: p.Level, OK: p.OK, At: p.Finished}
	if len(p.Problems) > 0 {
		s.Problem = p.Problems[0]
	}
	return s
}

// ErrUnverified says that a backup is not what it should be.
var ErrUnverified = errors.New("the backup does not hold what it should")

// ErrUnfinished marks why a verification could not be done.
var ErrUnfinished = errors.New("the backup could not be read back")

// SayTo adds what the verification showed to a summary.
func (p Verification) SayTo(s *phrase.Summary) {
	switch {
	case p.Unfinished:
		s.Say("The copy at %s could not be read back.", p.Destination)
	case p.OK:
		s.Say("The copy at %s was read back (%s) and is as it should be.", p.Destination, string(p.Level))
	default:
		s.Say("The copy at %s is not as it should be: %s {problem|problems}.", p.Destination, len(p.Problems))
	}
	if p.Note != "" {
		s.Say("Note: %s", p.Note)
	}
	phrase.Lines(s, phrase.Columns("Problem"), p.Problems)
}
