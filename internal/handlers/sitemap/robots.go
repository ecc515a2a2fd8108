package sitemap

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
	// maxSmall is what search engines read of robots.txt (RFC 9309 §2.5); llms.txt of
	// ours is smaller.
	maxSmall = 500 << 10
	// openRobots is a file that forbids nothing.
	openRobots = "User-agent: *\nDisallow:\n"
)

// robots puts the line that names the map into the site's robots.txt, or takes
// it out. Everything else in the file stays as it is.
func (h *Handler) robots(p *plan, listed bool) (err error) {
	if !p.options.Robots || h.site.Public() == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("naming the sitemap in robots.txt: %w", err)
		}
	}()
	root, err := os.OpenRoot(h.site.Public())
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := readSmall(root, robotsName)
	if err != nil {
		return err
	}
	if text := withSitemap(old, "Sitemap: "+p.links.Root+"/"+indexName, listed); text != old {
		return writeSmall(root, robotsName, text)
	}
	return nil
}

// readSmall reads a whole text; "" where there is none.
func readSmall(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(text) > maxSmall {
		err = fmt.Errorf("it has more than %d bytes, and is left alone", maxSmall)
	}
	return string(text), errors.Join(err, f.Close())
}

// withSitemap returns text with exactly one such line, or with none.
func withSitemap(text, line string, listed bool) string {
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

// writeSmall puts a text into place as a whole.
func writeSmall(root *os.Root, name, text string) error {
	staged := ".cmsjobs-" + strings.TrimSuffix(name, ".txt")
	f, err := root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, readable(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(staged))
	}
	return root.Rename(staged, name)
}
