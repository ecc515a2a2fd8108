package storage

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"
)

// SFTP keeps objects as files under one folder of another host. New files are 0600 in
// folders 0700. One connection serves all calls; one that broke is replaced at the next
// call.
type SFTP struct {
	o    SFTPOptions
	conn *sshConnection
}

// NewSFTP checks o. It connects at the first call.
func NewSFTP(o SFTPOptions) (*SFTP, error) {
	config, err := o.client()
	if err != nil {
		return nil, fmt.Errorf("setting %s up: %w", o, err)
	}
	return &SFTP{o, &sshConnection{o: o, config: config}}, nil
}

// Close ends the connection.
func (s *SFTP) Close() error { return s.conn.close() }

// String is the store's place, for messages and pages.
func (s *SFTP) String() string { return s.o.String() }

// do connects and calls f. When ctx ends first, the connection is given up, as a server
// that does not answer would hold f for ever.
func (s *SFTP) do(ctx context.Context, what, key string, f func(*sftp.Client) error) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s.conn.use(ctx, f)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = ErrNotFound
	case ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)):
		err = errors.Join(context.Cause(ctx), err)
	}
	return fmt.Errorf("%s %s in %s: %w", what, key, s, err)
}

func (s *SFTP) path(key string) string { return path.Join(s.o.folder(), key) }

// Put writes to a temporary name in the key's own folder, then renames it over what is
// there. What is under key is on the server's disk where the server can promise that
// (OpenSSH can).
func (s *SFTP) Put(ctx context.Context, key string, r io.Reader, _ PutOptions) error {
	return s.do(ctx, "writing", key, func(c *sftp.Client) (err error) {
		to := s.path(key)
		folder := path.Dir(to)
		if err := makeFolders(c, folder); err != nil {
			return fmt.Errorf("making its folder: %w", err)
		}
		if info, err := c.Lstat(to); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("it is there and is no regular file but %s", info.Mode().Type())
		}
		temp := path.Join(folder, tempPrefix+rand.Text())
		defer func() {
			if err != nil {
				err = errors.Join(err, removed(c.Remove(temp)))
			}
		}()
		if err := writeRemote(ctx, c, temp, r); err != nil {
			return err
		}
		return replace(c, temp, to)
	})
}

func writeRemote(ctx context.Context, c *sftp.Client, name string, r io.Reader) error {
	f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if err := f.Chmod(0o600); err != nil {
		return errors.Join(err, f.Close())
	}
	wrote, err := f.ReadFromWithConcurrency(contextReader{ctx, r}, writesAtOnce)
	if err == nil {
		if _, can := c.HasExtension("fsync@openssh.com"); can {
			err = f.Sync()
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	info, err := c.Lstat(name)
	if err == nil && info.Size() != wrote {
		err = fmt.Errorf("the server kept %d of %d bytes: is its disk full?", info.Size(), wrote)
	}
	return err
}

// writesAtOnce is how many packets of 32 KiB are on their way: what one write has to
// wait for is the way to the server and back.
const writesAtOnce = 64

// replace renames over what is there, at once where the server can.
func replace(c *sftp.Client, from, to string) error {
	if _, can := c.HasExtension("posix-rename@openssh.com"); can {
		return c.PosixRename(from, to)
	}
	if err := removed(c.Remove(to)); err != nil {
		return err
	}
	return c.Rename(from, to)
}

// removed is err, unless it says that nothing was there.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func makeFolders(c *sftp.Client, folder string) error {
	info, err := c.Stat(folder)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is no folder", folder)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeFolders(c, path.Dir(folder)); err != nil {
		return err
	}
	if err := c.Mkdir(folder); err != nil {
		if info, again := c.Stat(folder); again == nil && info.IsDir() {
			return nil // another was faster
		}
		return err
	}
	return c.Chmod(folder, 0o700)
}

// Open implements Store.
func (s *SFTP) Open(ctx context.Context, key string) (body io.ReadCloser, info Info, err error) {
	err = s.do(ctx, "opening", key, func(c *sftp.Client) error {
		if info, err = s.stat(c, key); err != nil {
			return err
		}
		f, err := c.Open(s.path(key))
		if err != nil {
			return err
		}
		body = &remoteFile{Reader: bufio.NewReaderSize(contextReader{ctx, f}, 1<<20), file: f,
			stop: context.AfterFunc(ctx, func() { _ = f.Close() })}
		return nil
	})
	return body, info, err
}

// remoteFile reads ahead by a megabyte, which is asked for in many packets at once.
type remoteFile struct {
	io.Reader
	file *sftp.File
	stop func() bool
}

// Close implements io.Closer.
func (f *remoteFile) Close() error {
	if !f.stop() {
		return nil // the context's end closed it
	}
	return f.file.Close()
}

// Stat implements Store.
func (s *SFTP) Stat(ctx context.Context, key string) (info Info, err error) {
	err = s.do(ctx, "looking at", key, func(c *sftp.Client) error {
		info, err = s.stat(c, key)
		return err
	})
	return info, err
}

func (s *SFTP) stat(c *sftp.Client, key string) (Info, error) {
	info, err := c.Lstat(s.path(key))
	if err != nil {
		if above, aboveErr := c.Lstat(path.Dir(s.path(key))); aboveErr == nil && !above.IsDir() {
			return Info{}, fs.ErrNotExist // servers have no word for a file that is asked for its files
		}
		return Info{}, err
	}
	if !info.Mode().IsRegular() {
		return Info{}, fs.ErrNotExist
	}
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

// Delete implements Store.
func (s *SFTP) Delete(ctx context.Context, key string) error {
	err := s.do(ctx, "removing", key, func(c *sftp.Client) error {
		if _, err := s.stat(c, key); err != nil {
			return err
		}
		return c.Remove(s.path(key))
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// DeleteAll removes objects, several at once.
func (s *SFTP) DeleteAll(ctx context.Context, keys []string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, key := range keys {
		g.Go(func() error { return s.Delete(ctx, key) })
	}
	return g.Wait()
}

// List implements Store. Objects that vanish while it walks are left out.
func (s *SFTP) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return s.folders().list(ctx, prefix, objects)
}

// Sweep removes what killed writers left under prefix and is older than before, and
// returns how many.
func (s *SFTP) Sweep(ctx context.Context, prefix string, before time.Time) (n int, err error) {
	return s.folders().sweep(ctx, prefix, before, func(key string) error {
		return s.conn.use(ctx, func(c *sftp.Client) error { return removed(c.Remove(s.path(key))) })
	})
}

func (s *SFTP) folders() folders { return folders{in: s.String(), entries: s.entries} }

func (s *SFTP) entries(ctx context.Context, folder string) (list []fs.DirEntry, err error) {
	err = s.conn.use(ctx, func(c *sftp.Client) error {
		found, err := c.ReadDirContext(ctx, s.path(folder))
		list = list[:0] // of a connection that broke
		for _, info := range found {
			list = append(list, fs.FileInfoToDirEntry(info))
		}
		return removed(err)
	})
	return list, err
}

// Free is how many bytes may still be written, where the server says it.
func (s *SFTP) Free() (free int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.timeout())
	defer cancel()
	err = s.conn.use(ctx, func(c *sftp.Client) error {
		if _, can := c.HasExtension("statvfs@openssh.com"); !can {
			return errors.New("the server does not say how much is free")
		}
		disk, err := c.StatVFS(s.o.folder())
		if err == nil {
			free = int64(disk.Bavail * disk.Frsize) //nolint:gosec // no disk has 8 EiB
		}
		return err
	})
	return free, err
}
