package main

import (
	"math"
	"testing"
	"time"
)

// even is a server on which everybody's question costs the same.
func even(claim, end time.Duration) curve {
	m := measured{claimers: 1, claim: claim, end: end, rows: batch}
	return curve{points: []measured{m, {claimers: 64, claim: claim, end: end, rows: batch}}, one: m}
}

// Where the server has nothing to do the slots are the limit; where the slots
// have nothing to do the server is.
func TestTheSimulationKeepsBothLimits(t *testing.T) {
	for name, c := range map[string]struct {
		f    fleet
		want float64
	}{
		"slots": {
			fleet{workers: 10, slots: 8, cores: 2, length: time.Second,
				costs: even(time.Microsecond, time.Microsecond)}, 80},
		// 2 cores / 16 ms a job
		"server": {
			fleet{workers: 1000, slots: 1, cores: 2, length: time.Millisecond,
				costs: even(8*time.Millisecond, 8*time.Millisecond)}, 125},
	} {
		got := simulate(c.f, 30*time.Second)
		if math.Abs(got.rate-c.want) > c.want/10 {
			t.Errorf("%s: %.0f jobs a second, want %.0f", name, got.rate, c.want)
		}
	}
}

func TestTheCurveIsReadBetweenItsPoints(t *testing.T) {
	c := curve{points: []measured{{claimers: 1, claim: 100, rows: 8}, {claimers: 3, claim: 300, rows: 4}}}
	for claimers, want := range map[int]time.Duration{1: 100, 2: 200, 3: 300, 500: 300} {
		if got, _, _ := c.at(claimers); got != want {
			t.Errorf("with %d: %v, want %v", claimers, got, want)
		}
	}
}
