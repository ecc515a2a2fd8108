package vp8plane

import (
	"os"
	"testing"
)

// BenchmarkDecode decodes the picture that CMSJOBS_BENCH_PICTURE names (a simple
// lossy WebP), else a small one of the tests.
func BenchmarkDecode(b *testing.B) {
	file := os.Getenv("CMSJOBS_BENCH_PICTURE")
	if file == "" {
		file = "testdata/fine.webp"
	}
	frame := frameOf(b, file)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(frame, 4); err != nil {
			b.Fatal(err)
		}
	}
}
