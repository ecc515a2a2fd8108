package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// corpus is a folder of files like those of a CMS: pictures, and small ones made
// from them.
type corpus struct {
	dir   string
	files int
	bytes int64
	rand  *rand.ChaCha8
}

// newCorpus writes the files, unless they are there.
func newCorpus(dir string, files int, bytes int64) (*corpus, error) {
	c := &corpus{dir, files, bytes, rand.NewChaCha8([32]byte{1})}
	if _, err := os.Stat(dir); err == nil {
		return c, nil
	}
	for i := range files {
		if err := c.write(c.name(i), c.size(i)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *corpus) name(i int) string {
	return filepath.Join(c.dir, fmt.Sprintf("uploads/20%02d/%02d/picture-%06d.jpg", 20+i%6, i/6%12+1, i))
}

// size is an eighth of the mean for three of four files, and 3.6 times it for the
// fourth.
func (c *corpus) size(i int) int64 {
	mean := c.bytes / int64(c.files)
	if i%4 == 0 {
		return mean*4 - 3*(mean/8)
	}
	return mean / 8
}

func (c *corpus) write(name string, size int64) error {
	content := make([]byte, size)
	_, _ = c.rand.Read(content)                                    // it never fails
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as uploads are
		return err
	}
	return os.WriteFile(name, content, 0o644) //nolint:gosec // as uploads are
}

// change adds and changes a hundredth of the files: nine new ones for each that is
// written again.
func (c *corpus) change() error {
	for i := range c.files / 100 {
		name := c.name(c.files + i)
		if i%10 == 0 {
			name = c.name(i * 97 % c.files)
		}
		if err := c.write(name, c.size(i)); err != nil {
			return err
		}
	}
	return nil
}

// size is that of all files of a folder.
func size(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
