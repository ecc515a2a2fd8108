package archive

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Entry describes one file in an archive.
type Entry struct {
	Name     string
	Size     int64
	Modified time.Time
	// Private says that others than its owner may not read it.
	Private bool
}

// private says so by the mode in an archive.
func private(mode fs.FileMode) bool { return mode.Perm()&0o004 == 0 }

// ErrUnsafe marks an entry that no backup of ours has: a link, a device, a
// name that leaves its folder.
var ErrUnsafe = errors.New("the archive is not one of ours, or was tampered with")

// ErrLocked says that an archive is encrypted and no identity opens it.
var ErrLocked = errors.New("the backup is encrypted and none of the age identities opens it")

// maxWindow bounds what a foreign archive may make the reader allocate.
const maxWindow = 64 << 20

// Read visits every entry of an archive in order and reads it to its very
// end. What visit leaves of an entry is skipped. Zip cannot be read as a
// stream: it is spooled into a temporary file first.
func Read(ctx context.Context, r io.Reader, f Format, encrypted bool, identities []age.Identity,
	visit func(Entry, io.Reader) error) error {
	if encrypted {
		if len(identities) == 0 {
			return ErrLocked
		}
		opened, err := age.Decrypt(r, identities...)
		var noMatch *age.NoIdentityMatchError
		if errors.As(err, &noMatch) {
			return fmt.Errorf("%w: %w", ErrLocked, err)
		}
		if err != nil {
			return fmt.Errorf("decrypting the archive: %w", err)
		}
		r = opened
	}
	switch f {
	case TarZstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderConcurrency(2))
		if err != nil {
			return fmt.Errorf("opening the archive: %w", err)
		}
		defer z.Close()
		return readTar(ctx, z, visit)
	case TarGzip:
		z, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("opening the archive: %w", err)
		}
		defer z.Close()
		return readTar(ctx, z, visit)
	case Zip:
		return readZip(ctx, r, visit)
	}
	return fmt.Errorf("%q is no format of archives", f)
}

func readTar(ctx context.Context, r io.Reader, visit func(Entry, io.Reader) error) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q is of type %q: %w", h.Name, h.Typeflag, ErrUnsafe)
		}
		e := Entry{h.Name, h.Size, h.ModTime, private(h.FileInfo().Mode())}
		if err := visitOne(ctx, e, t, visit); err != nil {
			return err
		}
	}
	// Tar ends before the stream does: only the rest shows whether it is whole.
	n, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20))
	if err == nil && n == 1<<20 {
		err = fmt.Errorf("more follows after the last entry: %w", ErrUnsafe)
	}
	if err != nil {
		return fmt.Errorf("reading the archive's end: %w", err)
	}
	return nil
}

func readZip(ctx context.Context, r io.Reader, visit func(Entry, io.Reader) error) error {
	spool, err := os.CreateTemp("", "cmsjobs-zip-")
	if err != nil {
		return fmt.Errorf("spooling a zip archive: %w", err)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil { // it lives as long as it is open
		return err
	}
	size, err := io.Copy(spool, r)
	if err != nil {
		return fmt.Errorf("spooling a zip archive: %w", err)
	}
	z, err := zip.NewReader(spool, size)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	for _, file := range z.File {
		if !file.Mode().IsRegular() {
			return fmt.Errorf("%q is %s: %w", file.Name, file.Mode().Type(), ErrUnsafe)
		}
		content, err := file.Open()
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		e := Entry{file.Name, int64(file.UncompressedSize64), file.Modified, private(file.Mode())}
		err = visitOne(ctx, e, content, visit)
		if err = errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func visitOne(ctx context.Context, e Entry, r io.Reader, visit func(Entry, io.Reader) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := checkName(e.Name); err != nil {
		return err
	}
	if err := visit(e, r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("reading %s in the archive: %w", e.Name, err)
	}
	return nil
}

// checkName refuses what could be written outside of a restore's folder, on
// any system.
func checkName(name string) error {
	if name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || len(name) > 4096 {
		return fmt.Errorf("the name %.200q: %w", name, ErrUnsafe)
	}
	return nil
}
