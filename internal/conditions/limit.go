package conditions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Unit is what a limit counts.
type Unit string

// The units. A limit without one is none.
const (
	Duration Unit = "duration" // nanoseconds; written 90s, 15m, 4h, 7d
	Bytes    Unit = "bytes"    // written 512MiB
	Share    Unit = "share"    // percent; written 50%
	Count    Unit = "count"
)

// Limit is a threshold.
type Limit struct {
	Unit  Unit
	Value int64
}

func duration(d time.Duration) Limit { return Limit{Duration, int64(d)} }
func bytes(n int64) Limit            { return Limit{Bytes, n} }
func share(percent int64) Limit      { return Limit{Share, percent} }
func count(n int64) Limit            { return Limit{Count, n} }

// Duration is the limit as a length of time.
func (l Limit) Duration() time.Duration { return time.Duration(l.Value) }

// String writes the limit as people write it, "" where there is none.
func (l Limit) String() string {
	switch l.Unit {
	case Duration:
		return span(l.Duration())
	case Bytes:
		return humanize.IBytes(uint64(max(l.Value, 0)))
	case Share:
		return fmt.Sprintf("%d %%", l.Value)
	case Count:
		return humanize.Comma(l.Value)
	}
	return ""
}

// ParseLimit reads a limit of a unit; the error says how it is written.
func ParseLimit(unit Unit, text string) (Limit, error) {
	r, known := limitReaders[unit]
	if !known {
		return Limit{}, errors.New("this condition has no limit")
	}
	text = strings.TrimSpace(text)
	n, ok := r.read(text)
	if !ok {
		return Limit{}, fmt.Errorf("%q is %s", text, r.refusal)
	}
	return Limit{unit, n}, nil
}

// limitReaders read a limit of each unit; refusal ends "TEXT is …".
var limitReaders = map[Unit]struct {
	read    func(text string) (n int64, ok bool)
	refusal string
}{
	Duration: {readDuration, "no length of time: write 90s, 15m, 4h or 7d"},
	Bytes: {func(text string) (int64, bool) {
		n, err := humanize.ParseBytes(text)
		return int64(n), err == nil && n < 1<<62
	}, "no size: write 512MiB or 2GiB"},
	Share: {func(text string) (int64, bool) {
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "%")))
		return int64(n), err == nil && n >= 0 && n <= 100
	}, "no share: write 50%"},
	Count: {func(text string) (int64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && n >= 0
	}, "no number"},
}

// readDuration takes Go's lengths of time and whole days.
func readDuration(text string) (int64, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return int64(n) * int64(24*time.Hour), err == nil && n >= 0 && n <= 36500
	}
	d, err := time.ParseDuration(text)
	return int64(d), err == nil && d >= 0
}

// span writes a length of time for people: 45 s, 12 min, 3 h, 2 d.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 72*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f d", d.Hours()/24)
}
