package main

import "testing"

func TestBenchmarkLinesAreRead(t *testing.T) {
	all := parse("goos: linux\nBenchmarkMillion/cmsjobs/1000-2   \t1\t5000000000 ns/op\t2.210 cpu-s/op\t37.00 " +
		"peak-MB\nBenchmarkBesidePeers/dump/own-plain-16 3 1290000000 ns/op\nPASS\n")
	if got := all["cmsjobs/1000"]; got["ns/op"] != 5e9 || got["cpu-s/op"] != 2.21 || got["peak-MB"] != 37 {
		t.Errorf("%v", all)
	}
	if all["dump/own-plain"]["ns/op"] != 1.29e9 || len(all) != 2 {
		t.Errorf("%v", all)
	}
}

func TestRenderingLinesAreRead(t *testing.T) {
	all := costs("== x.jpg\nours                24.7 ms     37 MB\nsharp-best          43.9 ms    124 MB\n")
	if all["ours"] != (cost{24.7, 37}) || all["sharp-best"].cpu != 43.9 || ratio(43.9, 24.7) != "1.78 ×" {
		t.Errorf("%v", all)
	}
}
