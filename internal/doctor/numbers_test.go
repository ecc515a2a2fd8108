package doctor

import "testing"

func TestRowNumbersThatRunOutAreSeen(t *testing.T) {
	for kind, limit := range map[string]float64{"int unsigned": 1<<32 - 1, "int(10) unsigned": 1<<32 - 1,
		"bigint unsigned": 1<<64 - 1, "bigint": 1<<63 - 1, "integer": 1<<63 - 1, "int": 1<<31 - 1} {
		if got := largest(kind); got != limit {
			t.Errorf("%s holds up to %g, want %g", kind, got, limit)
		}
	}
}
