package backup

import (
	"errors"
	"time"
)

// Level says how far a backup is read back.
type Level string

// The levels of a proof, each more than the one before it.
const (
	LevelNone     Level = "none"
	LevelBytes    Level = "bytes"    // the archive has the size and hash that it was given
	LevelParsed   Level = "parsed"   // and every entry its own hash, and the SQL as many rows as were dumped
	LevelRestored Level = "restored" // and a scratch database made of it equals what was dumped
)

// Proof is what reading a backup back from where it lies showed.
type Proof struct {
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
	// Note says why the proof went less far than it was to.
	Note string `json:"note,omitempty"`
	// Problems are what is wrong, the first ones.
	Problems []string `json:"problems,omitempty"`
}

// ErrUnproven says that a backup is not what it should be.
var ErrUnproven = errors.New("the backup does not hold what it should")

// maxProblems bounds what a proof lists.
const maxProblems = 50
