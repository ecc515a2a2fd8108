package tables

import (
	"math"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// TimeColumn is a column that holds a point in time.
type TimeColumn struct {
	Name string // quoted
	Kind TimeKind
	d    database.Dialect
}

type TimeKind int

const (
	unixSeconds  TimeKind = iota
	WallClock             // DATETIME, TIMESTAMP, timestamp without zone, text: in the session's zone
	zonedInstant          // timestamptz
)

// FromExpr turns an expression of Unix seconds into a value of the column's type.
func (m TimeColumn) FromExpr(seconds string) string {
	if m.Kind == unixSeconds {
		return seconds
	}
	return m.d.FromUnix(seconds, m.Kind == zonedInstant)
}

// FromUnix is the column's value for a known moment.
func (m TimeColumn) FromUnix(unix int64) string { return m.FromExpr(strconv.FormatInt(unix, 10)) }

// At is FromUnix for a statement that is sent again and again: where it is kept, the moment
// goes beside the text.
func (m TimeColumn) At(unix int64) (string, []any) {
	if m.d.KeepsStatements() {
		return m.FromExpr("CAST(? AS bigint)"), []any{unix}
	}
	return m.FromUnix(unix), nil
}

// Seconds reads the column as Unix seconds.
func (m TimeColumn) Seconds() string {
	if m.Kind == unixSeconds {
		return m.Name
	}
	return m.d.Unix(m.Name)
}

// ExactText reads the column exactly, for a position in its order; fromText makes
// what it gave a value to compare with.
func (m TimeColumn) ExactText() string {
	if m.Kind == unixSeconds {
		return m.Name
	}
	return m.d.Text(m.Name)
}

func (m TimeColumn) fromText(text string) (string, []any) {
	if m.Kind != unixSeconds {
		return m.d.MomentParam(m.Kind == zonedInstant), []any{text}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "0", nil
	}
	return strconv.FormatInt(n, 10), nil
}

// WholeSeconds rounds up: nothing runs early.
func WholeSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func UnixMilli(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
