package sitemap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
)

func zipped(name string) bool { return strings.HasSuffix(name, ".gz") }

func gunzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

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
