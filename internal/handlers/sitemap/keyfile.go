package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// validKey is what the protocol allows; it is also a safe name of a file.
var validKey = regexp.MustCompile(`^[A-Za-z0-9-]{8,128}$`)

// checkKey makes sure that the key file is where search engines look for it:
// in the public folder, where that is known, and at its address. Where the
// address cannot be reached from here, the file on the disk is enough.
func (h *Handler) checkKey(ctx context.Context, e *endpoint, s *Submission) error {
	onDisk := false
	if public := h.site.Public(); public != "" {
		var err error
		if onDisk, err = h.keyOnDisk(public, e.key, s); err != nil {
			return err
		}
	}
	err := e.keyOnline(ctx)
	if err != nil && onDisk && !jobs.IsPermanent(err) {
		h.log.Warn("the IndexNow key file is on the disk, but its address cannot be reached from here",
			"event", "indexnow.key_unreachable", "error", e.hide(err.Error()))
		return nil
	}
	return err
}

// keyOnDisk looks into the public folder and writes the file where it is
// missing and that is allowed.
func (h *Handler) keyOnDisk(public, key string, s *Submission) (bool, error) {
	root, err := os.OpenRoot(public)
	if err != nil {
		return false, nil // another host may serve the site: its address decides
	}
	defer root.Close()
	name := key + ".txt"
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !h.indexnow.WriteKey {
			return false, nil
		}
		if err := writeKey(root, name, key); err != nil {
			return false, fmt.Errorf("writing the IndexNow key file: %w", err)
		}
		s.KeyFile = "written"
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the IndexNow key file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("reading the IndexNow key file: %w", err)
	}
	if strings.TrimSpace(string(text)) != key {
		return false, jobs.Permanent(errors.New("the IndexNow key file in the public folder holds something else " +
			"than the key: remove it, or make a new key in the CMS's sitemap settings"))
	}
	return true, nil
}

func writeKey(root *os.Root, name, key string) error {
	const staged = ".cmsjobs-key"
	f, err := root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(key)
	if err := errors.Join(err, readable(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(staged))
	}
	return root.Rename(staged, name)
}

// keyOnline fetches the file as a search engine does. A wrong answer is
// permanent, no answer is not.
func (e *endpoint) keyOnline(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.keyURL, nil)
	if err != nil {
		return jobs.Permanent(fmt.Errorf("the address of the IndexNow key file: %w", err))
	}
	resp, err := e.http.Do(r) //nolint:bodyclose // ReadBody does
	if err != nil {
		return fmt.Errorf("fetching the IndexNow key file: %w", errors.New(e.hide(err.Error())))
	}
	text, err := outbound.ReadBody(resp)
	switch {
	case resp.StatusCode >= 500:
		return fmt.Errorf("fetching the IndexNow key file: the site answered %s", resp.Status)
	case resp.StatusCode != http.StatusOK:
		return jobs.Permanent(fmt.Errorf("the IndexNow key file is not there: %s/<key>.txt answered %s; put a file "+
			"with the key into the CMS's public folder, or allow cmsjobs to write it",
			strings.TrimSuffix(e.keyURL, "/"+e.key+".txt"), resp.Status))
	case err != nil:
		return fmt.Errorf("fetching the IndexNow key file: %w", err)
	case strings.TrimSpace(string(text)) != e.key:
		return jobs.Permanent(fmt.Errorf("the IndexNow key file shows something else than the key: open %s/<key>.txt "+
			"in a browser; it must show the key and nothing else", strings.TrimSuffix(e.keyURL, "/"+e.key+".txt")))
	}
	return nil
}
