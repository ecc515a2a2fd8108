package main

import (
	"slices"
	"testing"
	"time"
)

func TestAimsAreMetOrMissed(t *testing.T) {
	times := []time.Duration{time.Millisecond, 6 * time.Millisecond, 600 * time.Millisecond}
	f := found{nap: nap{alone: 5 * time.Millisecond, own: 5600 * time.Microsecond}, crashes: times, knocked: times,
		plain: times, drains: []drain{
			{processes: 1, median: cost{jobs: 100, wall: time.Second, php: time.Second}},
			{processes: 1, median: cost{jobs: 500, wall: time.Second, php: time.Second, own: time.Second / 2}}}}
	rows := f.aims()
	var got []string
	for _, row := range rows {
		got = append(got, row[1]+" "+row[3])
	}
	want := []string{"5.00 missed", "0.30 missed", "0.60 met", "600.00 missed", "6.00 missed", "6.00 met"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
