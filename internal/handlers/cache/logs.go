package cache

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

const (
	logsFolder = "storage/logs"
	currentLog = "laravel.log"
	// rotatedAt stands in the name of a file that we put aside.
	rotatedAt = "20060102T150405"
	// settle is how long a file that was put aside is left alone before it is
	// compressed: a PHP worker may still have it open.
	settle = 10 * time.Minute
)

var (
	logFile     = regexp.MustCompile(`\.log(\.[0-9T]+)?(\.gz)?$`)
	datedLog    = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2})\.log(\.gz)?$`)
	rotatedFile = regexp.MustCompile(`\.log\.(\d{8}T\d{6})$`)
)

// reserved keeps logs from those who would remove their traces: only
// administrators keep fewer days than the settings do.
func (h *Handler) reserved(p LogsPayload) []string {
	if p.Days > 0 && p.Days < h.options.LogDays {
		return []string{"days"}
	}
	return nil
}

func (h *Handler) cleanLogs(ctx context.Context, _ jobs.Job, p LogsPayload) error {
	r := &Report{DryRun: p.DryRun}
	days := p.Days
	if days == 0 {
		days = h.options.LogDays
	}
	return h.bestEffort(ctx, r, []step{
		{logsFolder, func(ctx context.Context) error { return h.cleanLogFiles(ctx, days, p, r) }},
		{"old rows", func(ctx context.Context) error { return h.cleanRows(ctx, r) }},
	})
}

func (h *Handler) cleanLogFiles(ctx context.Context, days int, p LogsPayload, r *Report) error {
	root, err := h.folder(logsFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, errNoFolder) {
		r.note("log files were left alone: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	zone, err := h.site.Zone(ctx)
	if err != nil {
		return err
	}
	now := h.now().In(zone)
	oldest := now.AddDate(0, 0, -days)
	err = files(ctx, root, r, func(name string, entry fs.DirEntry) {
		info, err := entry.Info()
		if err != nil || !logFile.MatchString(name) {
			return
		}
		switch {
		case !current(name, now) && logTime(name, info, zone).Before(oldest):
			remove(root, name, info.Size(), r)
		case rotatedFile.MatchString(name) && rotatedTime(name).Before(now.Add(-settle)):
			h.compress(ctx, root, name, r)
		}
	})
	if err != nil {
		return err
	}
	return h.rotate(ctx, root, now, p, r)
}

// current says whether PHP writes to a file today: it stays, however old.
func current(name string, now time.Time) bool {
	base := path.Base(name)
	if base == currentLog {
		return true
	}
	dated := datedLog.FindStringSubmatch(base)
	return dated != nil && dated[1] == now.Format(time.DateOnly)
}

// logTime is a log's age by the date in its name (the end of that day), else
// by its last change.
func logTime(name string, info fs.FileInfo, zone *time.Location) time.Time {
	if dated := datedLog.FindStringSubmatch(name); dated != nil {
		if day, err := time.ParseInLocation(time.DateOnly, dated[1], zone); err == nil {
			return day.AddDate(0, 0, 1)
		}
	}
	return info.ModTime()
}

func rotatedTime(name string) time.Time {
	at, err := time.Parse(rotatedAt, rotatedFile.FindStringSubmatch(name)[1])
	if err != nil {
		return time.Time{}
	}
	return at
}

// rotate puts an over-large laravel.log aside; PHP begins a new one with its
// next line. A PHP worker that has the file open may go on writing to it, so it
// is compressed by a later run, which is enqueued here.
func (h *Handler) rotate(ctx context.Context, root *os.Root, now time.Time, p LogsPayload, r *Report) error {
	info, err := root.Lstat(currentLog)
	if err != nil || !info.Mode().IsRegular() || h.options.RotateAbove < 0 || info.Size() <= h.options.RotateAbove {
		return nil // also: there is none
	}
	aside := currentLog + "." + now.UTC().Format(rotatedAt)
	r.Rotated = append(r.Rotated, aside)
	if r.DryRun {
		return nil
	}
	if err := root.Rename(currentLog, aside); err != nil {
		return fmt.Errorf("putting %s aside: %w", currentLog, err)
	}
	jobs.FollowUp(ctx, LogsCleanup.New(p).In(settle+time.Minute))
	return nil
}

// compress replaces a file by its .gz, which keeps its mode and its age. What
// fails half-way leaves the file as it was.
func (h *Handler) compress(ctx context.Context, root *os.Root, name string, r *Report) {
	if !r.DryRun {
		if err := compressFile(ctx, root, name); err != nil {
			r.failed(name, err)
			return
		}
	}
	r.Compressed = append(r.Compressed, name)
}

func compressFile(ctx context.Context, root *os.Root, name string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	half := name + ".gz.part"
	if err := gzipTo(ctx, root, half, in, info.Mode().Perm()); err != nil {
		return errors.Join(err, root.Remove(half))
	}
	if err := root.Rename(half, name+".gz"); err != nil {
		return errors.Join(err, root.Remove(half))
	}
	return errors.Join(root.Chtimes(name+".gz", info.ModTime(), info.ModTime()), root.Remove(name))
}

func gzipTo(ctx context.Context, root *os.Root, name string, in io.Reader, mode fs.FileMode) error {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(out)
	_, err = io.Copy(zip, reading{ctx, in})
	return errors.Join(err, zip.Close(), out.Sync(), out.Close())
}

// reading stops when its context ends.
type reading struct {
	ctx context.Context
	io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.ctx.Err()
	}
	return r.Reader.Read(p)
}
