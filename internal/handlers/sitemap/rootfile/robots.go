package rootfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	robotsName = "robots.txt"
	// maxBytes is what search engines read of robots.txt (RFC 9309 §2.5); llms.txt of
	// ours is smaller.
	maxBytes = 500 << 10
	// openRobots is a file that forbids nothing.
	openRobots = "User-agent: *\nDisallow:\n"
)

// Robots puts a line that names a sitemap, "Sitemap: URL", into the robots.txt of the
// web server's folder dir, or takes it out where the site is listed nowhere.
// Everything else in the file stays as it is.
func Robots(dir, line string, listed bool) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("naming the sitemap in %s: %w", robotsName, err)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := read(root, robotsName)
	if err != nil {
		return err
	}
	if text := withLine(old, line, listed); text != old {
		return write(root, robotsName, text)
	}
	return nil
}

// read reads a whole text; "" where there is none.
func read(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("it has more than %d bytes, and is left alone", maxBytes)
	}
	return string(text), errors.Join(err, f.Close())
}

// withLine returns text with exactly one such line, or with none.
func withLine(text, line string, listed bool) string {
	var kept []string
	found := false
	for l := range strings.Lines(text) {
		if strings.EqualFold(strings.TrimSpace(l), line) {
			if found || !listed {
				continue
			}
			found = true
		}
		kept = append(kept, l)
	}
	out := strings.Join(kept, "")
	switch {
	case !listed || found:
		return out
	case out == "":
		out = openRobots
	case !strings.HasSuffix(out, "\n"):
		out += "\n"
	}
	return out + "\n" + line + "\n"
}

// write puts a text into place as a whole. The web server can read it, whatever the
// umask says: it often runs as another account.
func write(root *os.Root, name, text string) error {
	staged := ".cmsjobs-" + strings.TrimSuffix(name, ".txt")
	f, err := root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(staged))
	}
	return root.Rename(staged, name)
}
