package analytics

import (
	"bufio"
	"io"
	"time"
)

// Imported is what an import did.
type Imported struct {
	Lines   int64 `json:"lines"`
	Views   int64 `json:"views"`   // page views stored, bots included
	Skipped int64 `json:"skipped"` // assets, redirects, errors, posts
	Bad     int64 `json:"bad"`     // lines of no known format
	Already int64 `json:"already"` // page views that are there from an earlier import
	TooOld  int64 `json:"tooOld"`  // older than raw rows are kept
	// Before is how many bytes of the log's text an earlier import had read: they are
	// not read again, and not among Lines.
	Before int64 `json:"before"`
}

// Log says where an access log is from.
type Log struct {
	Name string // of the file, for messages
	// Host is used for lines that name none; "" is the CMS's own.
	Host string
	// Server is any name of the web server that wrote it, where several serve one
	// site: views of two servers are never taken for one.
	Server string
	// Again reads all of it, also what an earlier import has read.
	Again bool
}

// importer is one import under way.
type importer struct {
	h      *Handler
	log    Log
	zone   *time.Location
	done   *Imported
	rows   []row
	line   int64
	oldest time.Time
	// equal counts the views with one digest: several visitors may ask for the
	// same thing in the same second. older is equal before it was full.
	equal, older map[uint64]uint32
	known        known
}

// countingReader tells how much was read.
type countingReader struct {
	r    io.Reader
	n    int64
	told func(int64)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.told != nil {
		c.told(c.n)
	}
	return n, err
}

// known is what an import knows of the log as a text.
type known struct {
	id     string // of the log; "" when it is too short to be known
	stored position
	// marks are the last two places that the import came by, overlap apart.
	marks [2]position
}

// position is how far a log was read. It counts only while the same bytes are there,
// and while views are not kept for longer than then.
type position struct {
	Offset int64  `db:"read_to"` // in the text, at the beginning of a line
	Digest string `db:"digest"`  // of the bytes that follow
	Oldest int64  `db:"oldest"`  // what was older was left out; Unix milliseconds
}

// logText is a log's text, unpacked.
type logText struct {
	*bufio.Reader
	read *countingReader
}
