//go:build !amd64

package pngrows

func unfilterVectors(byte, []byte, []byte, []byte, int) int { return 0 }

func addColumns(sums []uint16, row []byte) { addColumnsGo(sums, row) }

func filterRow(_ *[3][]byte, _, _ []byte, stride int, _ *[3]uint64) int { return stride }
