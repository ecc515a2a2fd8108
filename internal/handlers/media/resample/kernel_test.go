package resample

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Both passes equal their counterparts in plain Go bit by bit, on any weights.
func FuzzKernelsEqualTheirDuplicates(f *testing.F) {
	f.Add(uint64(1), uint16(16), uint8(7))
	f.Add(uint64(2), uint16(33), uint8(1))
	f.Add(uint64(3), uint16(801), uint8(16))
	for i := range 64 {
		f.Add(uint64(i), uint16(i*37), uint8(i*5))
	}
	f.Fuzz(func(t *testing.T, seed uint64, width uint16, taps uint8) {
		n, k := int(width)%2000+1, int(taps)%70+1
		r := rand.New(rand.NewPCG(seed, 1))
		stride := n + r.IntN(20)
		src := make([]byte, (k-1)*stride+n)
		fill(r, src)
		weights := randomWeights(r, k)
		got, want := make([]int16, n), make([]int16, n)
		vertical(got, src, stride, weights)
		verticalGo(want, src, stride, weights)
		if !slices.Equal(got, want) {
			t.Fatalf("vertical, n=%d taps=%d: %v\nwant %v", n, k, got, want)
		}
		steps := (k + horizontalStep - 1) / horizontalStep * horizontalStep
		line := make([]int16, n+steps)
		for i := range line {
			line[i] = int16(r.Uint32())
		}
		columns := filter{taps: steps, start: make([]int32, n), weights: randomWeights(r, n*steps)}
		for i := range columns.start {
			columns.start[i] = int32(r.IntN(n + 1))
		}
		columns.inside(len(line))
		gotRow, wantRow := make([]byte, n), make([]byte, n)
		horizontal(gotRow, line, columns)
		horizontalGo(wantRow, line, columns)
		if !bytes.Equal(gotRow, wantRow) {
			t.Fatalf("horizontal, n=%d taps=%d: %v\nwant %v", n, steps, gotRow, wantRow)
		}
	})
}

func randomWeights(r *rand.Rand, n int) []int16 {
	w := make([]int16, n)
	for i := range w {
		w[i] = int16(r.Uint32())
	}
	return w
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}
