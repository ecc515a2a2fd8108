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
	switch {
	case m.Kind == unixSeconds:
		return seconds
	case m.d.Name == "mysql":
		return "FROM_UNIXTIME(" + seconds + ")"
	case m.d.Name == "sqlite":
		return "datetime(" + seconds + ", 'unixepoch')"
	case m.Kind == WallClock:
		return "CAST(to_timestamp(" + seconds + ") AS timestamp)"
	}
	return "to_timestamp(" + seconds + ")"
}

// FromUnix is the column's value for a known moment.
func (m TimeColumn) FromUnix(unix int64) string { return m.FromExpr(strconv.FormatInt(unix, 10)) }

// Seconds reads the column as Unix seconds.
func (m TimeColumn) Seconds() string {
	switch {
	case m.Kind == unixSeconds:
		return m.Name
	case m.d.Name == "mysql":
		return "CAST(UNIX_TIMESTAMP(" + m.Name + ") AS SIGNED)"
	case m.d.Name == "sqlite":
		return "CAST(strftime('%s', " + m.Name + ") AS INTEGER)"
	}
	return "CAST(floor(EXTRACT(EPOCH FROM CAST(" + m.Name + " AS timestamptz))) AS BIGINT)"
}

// ExactText reads the column exactly, for a position in its order; literal turns
// what text gave back into a value to compare with.
func (m TimeColumn) ExactText() string {
	switch {
	case m.Kind == unixSeconds:
		return m.Name
	case m.d.Name == "mysql":
		return "CAST(" + m.Name + " AS CHAR)"
	}
	return "CAST(" + m.Name + " AS TEXT)"
}

func (m TimeColumn) fromText(text string) (string, []any) {
	switch {
	case m.Kind == unixSeconds:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
		return "0", nil
	case m.d.Name == "postgres" && m.Kind == WallClock:
		return "CAST(? AS timestamp)", []any{text}
	case m.d.Name == "postgres":
		return "CAST(? AS timestamptz)", []any{text}
	case m.d.Name == "mysql":
		return "CAST(? AS DATETIME(6))", []any{text}
	}
	return "?", []any{text}
}

// WholeSeconds rounds up: nothing runs early.
func WholeSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func UnixMilli(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
