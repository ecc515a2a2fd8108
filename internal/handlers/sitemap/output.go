package sitemap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
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

// sealer brings finished files to the disk, and makes their compressed copies,
// beside the writing of the next ones: fsync is most of the time of a map of
// many small files.
type sealer struct {
	stage *os.Root
	work  chan sealing
	wait  sync.WaitGroup

	mu  sync.Mutex
	err error
}

type sealing struct {
	file   *os.File
	staged string
	zip    bool
}

const sealers = 4

func newSealer(stage *os.Root) *sealer {
	s := &sealer{stage: stage, work: make(chan sealing, sealers)}
	for range sealers {
		s.wait.Go(func() {
			for w := range s.work {
				s.note(s.seal(w))
			}
		})
	}
	return s
}

func (s *sealer) seal(w sealing) error {
	var err error
	if w.zip {
		err = zipBeside(s.stage, w.file, w.staged+".gz")
	}
	return errors.Join(err, readable(w.file), w.file.Sync(), w.file.Close())
}

// readable lets the web server read a file, whatever the umask says: it often
// runs as another account.
func readable(f *os.File) error { return f.Chmod(0o644) }

func (s *sealer) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

// take takes a finished file over. It returns what went wrong with files
// before it.
func (s *sealer) take(f *os.File, staged string, zip bool) error {
	s.work <- sealing{f, staged, zip}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// done waits until everything is on the disk.
func (s *sealer) done() error {
	close(s.work)
	s.wait.Wait()
	return s.err
}

// zipBeside writes a compressed copy of f, which it reads from its beginning.
func zipBeside(stage *os.Root, f *os.File, name string) error {
	out, err := stage.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("compressing the sitemap: %w", err)
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, io.NewSectionReader(f, 0, maxBytes+outputBuffer))
	if err := errors.Join(err, z.Close(), readable(out), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("compressing the sitemap: %w", err)
	}
	return nil
}
