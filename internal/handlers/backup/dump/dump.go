package dump

import (
	"time"
)

// Part says which of the two files a piece of SQL belongs to.
type Part int

// The two files of a dump.
const (
	Main  Part = iota // tables, rows, views: plain statements
	Extra             // triggers, routines, events, and views that need them
)

// Sink takes the dump piece by piece, in order: all of Main, then all of
// Extra. table is "" for what belongs to no table. The bytes are the sink's
// until it returns. Pieces of one table follow each other.
type Sink func(part Part, table string, sql []byte) error

// Options choose what is dumped. The zero value dumps everything.
type Options struct {
	// Tables, where not empty, are the only tables and views that are dumped;
	// triggers go with them, routines and events stay out.
	Tables []string
	// Exclude says which tables are left out.
	Exclude func(table string) bool
	// Empty says which tables are dumped without their rows.
	Empty func(table string) bool
	// Throttle limits reading, in bytes of SQL per second; 0 means no limit.
	Throttle int64
	// Progress receives after each piece how much SQL and how many rows there are.
	Progress func(table string, rows, bytes int64)
	// LogPosition asks for Summary.Log. On MySQL writers wait for a moment then.
	LogPosition bool
	// PieceSize is about how long a piece is; 0 means 2 MiB.
	PieceSize int
	// CutByKey ends pieces, of about 256 KiB, where the rows' keys say so: rows that stay
	// make the same pieces in each dump. Of SQLite its pages say so; PostgreSQL and
	// Mysqldump know no keys and cut by size only.
	CutByKey bool
}

// Summary describes a dump, for a manifest.
type Summary struct {
	Server    string    `json:"server"` // VERSION()
	Database  string    `json:"database"`
	Charset   string    `json:"charset"`
	Collation string    `json:"collation"`
	Snapshot  time.Time `json:"snapshot"` // the server's clock
	// Log is the position of the binary log at the snapshot; nil where it is not known.
	Log       *LogPosition `json:"log,omitempty"`
	Tables    []Table      `json:"tables"`
	Views     []string     `json:"views,omitempty"`
	Sequences []string     `json:"sequences,omitempty"`
	Routines  []string     `json:"routines,omitempty"`
	Triggers  []string     `json:"triggers,omitempty"`
	Events    []string     `json:"events,omitempty"`
	Rows      int64        `json:"rows"`
	Bytes     int64        `json:"bytes"` // of SQL
	// Schema is a hash over Objects; of PostgreSQL and SQLite over every CREATE statement.
	Schema string `json:"schema"`
	// Objects say how each table, view and stored program of MySQL is made.
	Objects []Object `json:"objects,omitempty"`
	// Warnings name what the dump does not hold as it was: tables without
	// snapshots, views that are broken, bodies that may not be read.
	Warnings []string `json:"warnings,omitempty"`
}

// Table describes one dumped table.
type Table struct {
	Name   string `json:"name"`
	Engine string `json:"engine"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"` // of SQL
	// Checksum is the sum of all rows' XXH64, as hexadecimal: the same for the
	// same rows in any order.
	Checksum string `json:"checksum,omitempty"`
	// Empty is true when rows were left out on purpose.
	Empty bool `json:"empty,omitempty"`
	// Unsafe is true when the engine has no snapshots, so that rows written
	// meanwhile may be in it or not.
	Unsafe bool `json:"unsafe,omitempty"`

	lossy bool // the loss was warned of
}

// Object is how one table, view, sequence, routine, trigger or event is made, as
// the server's own catalogue states it: SHOW CREATE is no measure, as MySQL 8
// writes another text for a table that was restored from that very text.
type Object struct {
	Kind string `json:"kind"` // table, view, sequence, function, procedure, trigger, event, …
	Name string `json:"name"`
	// Facts say what belongs to it ("column title", "index PRIMARY") and how it is.
	Facts map[string]string `json:"facts"`
}

func (o Object) String() string { return o.Kind + " " + o.Name }
