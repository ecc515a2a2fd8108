package sqlstore

import (
	"math"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// TimeColumn is a column that holds a point in time.
type TimeColumn struct {
	name string // quoted
	kind TimeKind
	d    database.Dialect
}

type TimeKind int

const (
	unixSeconds  TimeKind = iota
	wallClock             // DATETIME, TIMESTAMP, timestamp without zone, text: in the session's zone
	zonedInstant          // timestamptz
)

// fromExpr turns an expression of Unix seconds into a value of the column's type.
func (m TimeColumn) fromExpr(seconds string) string {
	switch {
	case m.kind == unixSeconds:
		return seconds
	case m.d.Name == "mysql":
		return "FROM_UNIXTIME(" + seconds + ")"
	case m.d.Name == "sqlite":
		return "datetime(" + seconds + ", 'unixepoch')"
	case m.kind == wallClock:
		return "CAST(to_timestamp(" + seconds + ") AS timestamp)"
	}
	return "to_timestamp(" + seconds + ")"
}

// fromUnix is the column's value for a known moment.
func (m TimeColumn) fromUnix(unix int64) string { return m.fromExpr(strconv.FormatInt(unix, 10)) }

// seconds reads the column as Unix seconds.
func (m TimeColumn) seconds() string {
	switch {
	case m.kind == unixSeconds:
		return m.name
	case m.d.Name == "mysql":
		return "CAST(UNIX_TIMESTAMP(" + m.name + ") AS SIGNED)"
	case m.d.Name == "sqlite":
		return "CAST(strftime('%s', " + m.name + ") AS INTEGER)"
	}
	return "CAST(floor(EXTRACT(EPOCH FROM CAST(" + m.name + " AS timestamptz))) AS BIGINT)"
}

// exactText reads the column exactly, for a position in its order; literal turns
// what text gave back into a value to compare with.
func (m TimeColumn) exactText() string {
	switch {
	case m.kind == unixSeconds:
		return m.name
	case m.d.Name == "mysql":
		return "CAST(" + m.name + " AS CHAR)"
	}
	return "CAST(" + m.name + " AS TEXT)"
}

func (m TimeColumn) fromText(text string) (string, []any) {
	switch {
	case m.kind == unixSeconds:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
		return "0", nil
	case m.d.Name == "postgres" && m.kind == wallClock:
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

func unixMilli(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
