//go:build !amd64

package jpegplane

// vectors says that inverse is not fast here: a full decoder is faster.
func vectors() bool { return false }

func inverse(dst []byte, stride int, c *[64]int16, b *basis) { inverseGo(dst, stride, c, b) }
