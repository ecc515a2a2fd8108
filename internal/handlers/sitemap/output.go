package sitemap

import (
	"os"
	"slices"
	"time"
)

// output is one sitemap file while it is written.
type output struct {
	file     *os.File
	staged   string
	buffer   []byte
	urls     int
	bytes    int64
	modified time.Time
}

// outputBuffer is how much is written at once. More costs more: since Linux
// 6.16 ext4 takes pages for a write in one piece, and to find 256 KiB of memory
// in a piece takes three times the processor of eight times 32 KiB.
const outputBuffer = 32 << 10

// fits says whether an entry of n bytes may still go into the file.
func (o *output) fits(n, perFile int) bool {
	return o.urls < perFile && o.bytes+int64(n+len(footer)) <= maxBytes
}

// write adds the header (the first call) or an entry.
func (o *output) write(text []byte, modified time.Time) error {
	if o.bytes > 0 {
		o.urls++
	}
	if modified.After(o.modified) {
		o.modified = modified
	}
	o.bytes += int64(len(text))
	if o.buffer = append(o.buffer, text...); len(o.buffer) < outputBuffer {
		return nil
	}
	return o.flush(len(o.buffer) - len(o.buffer)%outputBuffer)
}

// flush writes the first n bytes of the buffer. They end with a page of memory,
// but for the last: the kernel need not take up a page twice.
func (o *output) flush(n int) error {
	for part := range slices.Chunk(o.buffer[:n], outputBuffer) {
		if _, err := o.file.Write(part); err != nil {
			return err
		}
	}
	o.buffer = o.buffer[:copy(o.buffer, o.buffer[n:])]
	return nil
}

func (o *output) end() (file, error) {
	o.buffer = append(o.buffer, footer...)
	o.bytes += int64(len(footer))
	return file{staged: o.staged, urls: o.urls, bytes: o.bytes, modified: o.modified}, o.flush(len(o.buffer))
}
