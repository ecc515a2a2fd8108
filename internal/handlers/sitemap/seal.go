package sitemap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

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

const (
	sealers = 4
	// together is how many open files a goroutine holds before it waits for the disk:
	// the first fsync writes what the file system noted about all of them, so the rest
	// costs little. Each file's bytes are on their way since it was finished.
	together = 64
)

func newSealer(stage *os.Root) *sealer {
	s := &sealer{stage: stage, work: make(chan sealing, sealers)}
	for range sealers {
		s.wait.Go(func() {
			held := make([]*os.File, 0, together+1)
			for w := range s.work {
				held = s.finish(held, w)
				if len(held) >= together {
					s.note(syncAll(held))
					held = held[:0]
				}
			}
			s.note(syncAll(held))
		})
	}
	return s
}

// finish makes what else belongs to a file, begins to bring it to the disk and
// adds it to those held.
func (s *sealer) finish(held []*os.File, w sealing) []*os.File {
	if w.zip {
		zipped, err := zipBeside(s.stage, w.file, w.staged+".gz")
		if s.note(err); err == nil {
			held = s.begin(held, zipped)
		}
	}
	return s.begin(held, w.file)
}

func (s *sealer) begin(held []*os.File, f *os.File) []*os.File {
	s.note(readable(f))
	storage.BeginSync(f)
	return append(held, f)
}

// syncAll waits until files are on the disk and closes them.
func syncAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Sync(), f.Close())
	}
	return errors.Join(errs...)
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

// zipBeside writes a compressed copy of f, which it reads from its beginning. The
// caller closes it.
func zipBeside(stage *os.Root, f *os.File, name string) (*os.File, error) {
	out, err := stage.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("compressing the sitemap: %w", err)
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, io.NewSectionReader(f, 0, maxBytes+outputBuffer))
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("compressing the sitemap: %w", err), out.Close())
	}
	return out, nil
}
