package analytics

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"time"
)

// Imported is what an import did.
type Imported struct {
	Lines   int64 `json:"lines"`
	Views   int64 `json:"views"`   // page views stored, bots included
	Skipped int64 `json:"skipped"` // assets, redirects, errors, posts
	Bad     int64 `json:"bad"`     // lines of no known format
	Already int64 `json:"already"` // lines that an earlier import had read
	TooOld  int64 `json:"tooOld"`  // older than raw rows are kept
}

const (
	fingerprint = 4 << 10 // so many first bytes tell logs apart
	importBatch = 5000
)

// Import reads an access log, plain or gzipped, in the formats of nginx,
// Apache and Caddy. host is used for lines that name none; "" is the CMS's own.
// It may be stopped
// at any time and called again with the same log, also when that has grown:
// lines that were read are not read again, and a line that is read twice makes
// one row. progress is told how many bytes of r were used.
func (h *Handler) Import(ctx context.Context, name, host string, r io.Reader, progress func(bytes int64)) (Imported, error) {
	var done Imported
	counted := &countingReader{r: r, told: progress}
	text, err := plain(bufio.NewReaderSize(counted, 64<<10))
	if err != nil {
		return done, fmt.Errorf("reading %s: %w", name, err)
	}
	source, number, err := sourceOf(text)
	if err != nil {
		return done, fmt.Errorf("reading %s: %w", name, err)
	}
	done.Already, err = h.readSoFar(ctx, source)
	if err != nil {
		return done, err
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return done, err
	}
	if host == "" {
		host = cmp.Or(h.ownHost(), "unknown")
	}
	in := importer{h: h, name: name, host: host, source: source, number: number, zone: zone, done: &done}
	return done, in.run(ctx, text)
}

// plain undoes gzip where the bytes say so.
func plain(r *bufio.Reader) (*bufio.Reader, error) {
	magic, err := r.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return r, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}

// sourceOf names a log by its first line, which stays when the log grows or is
// rotated under another name.
func sourceOf(text *bufio.Reader) (string, uint64, error) {
	head, err := text.Peek(fingerprint)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", 0, err
	}
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	sum := fnv.New64a()
	sum.Write(head)
	return hex.EncodeToString(sum.Sum(nil)), sum.Sum64(), nil
}

func (h *Handler) readSoFar(ctx context.Context, source string) (int64, error) {
	var lines int64
	err := h.DB.GetContext(ctx, &lines, h.DB.Rebind("SELECT lines_read FROM cmsjobs_analytics_imports WHERE source = ?"), source)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("looking up how far the log was read: %w", err)
	}
	return lines, nil
}

// importer is one import under way.
type importer struct {
	h          *Handler
	name, host string
	source     string
	number     uint64
	zone       *time.Location
	done       *Imported
	rows       []row
	line       int64
	oldest     time.Time
}

func (in *importer) run(ctx context.Context, text *bufio.Reader) error {
	if in.h.KeepRaw > 0 {
		in.oldest = in.h.Now().Add(-in.h.KeepRaw)
	}
	for {
		line, err := readLine(text)
		if errors.Is(err, io.EOF) {
			return in.flush(ctx)
		}
		if err != nil && !errors.Is(err, bufio.ErrTooLong) {
			return errors.Join(fmt.Errorf("reading %s after line %d: %w", in.name, in.line, err), in.flush(ctx))
		}
		in.line++
		if in.line <= in.done.Already {
			continue
		}
		in.done.Lines++
		if err != nil {
			in.done.Bad++
		} else if err := in.add(ctx, line); err != nil {
			return err
		}
		if len(in.rows) >= importBatch || in.done.Lines%100_000 == 0 {
			if err := in.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// readLine reads one line of bounded length; a longer one is skipped whole and
// reported as bufio.ErrTooLong. A last line without its end is left for the
// next import: the server may be writing it.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, bufio.ErrTooLong
}

func (in *importer) add(ctx context.Context, line []byte) error {
	v, err := parseLine(line)
	switch {
	case errors.Is(err, errSkip):
		in.done.Skipped++
		return nil
	case err != nil:
		in.done.Bad++
		return nil
	case v.At.Before(in.oldest):
		in.done.TooOld++
		return nil
	}
	if v.Host == "" {
		v.Host = in.host
	}
	v.Nonce = lineNonce(in.number, in.line)
	r, err := in.h.row(ctx, v, in.zone)
	if err != nil {
		return err
	}
	in.rows = append(in.rows, r)
	in.done.Views++
	return nil
}

// flush writes what was read and notes how far that was, in this order: after
// a crash between the two the lines are read again and make the same rows.
func (in *importer) flush(ctx context.Context) error {
	late, err := in.h.keep(ctx, in.rows)
	if err != nil {
		return err
	}
	in.done.TooOld, in.done.Views = in.done.TooOld+late, in.done.Views-late
	in.rows = in.rows[:0]
	query := "INSERT INTO cmsjobs_analytics_imports (source, name, lines_read, updated) VALUES (?, ?, ?, ?) ON CONFLICT (source) DO UPDATE SET lines_read = excluded.lines_read, name = excluded.name, updated = excluded.updated"
	if in.h.DB.DriverName() == "mysql" {
		query = "INSERT INTO cmsjobs_analytics_imports (source, name, lines_read, updated) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE lines_read = VALUES(lines_read), name = VALUES(name), updated = VALUES(updated)"
	}
	_, err = in.h.DB.ExecContext(ctx, in.h.DB.Rebind(query), in.source, clean(in.name, 500), in.line, in.h.Now().Unix())
	if err != nil {
		return fmt.Errorf("noting how far %s was read: %w", in.name, err)
	}
	return nil
}

// countingReader tells how much was read.
type countingReader struct {
	r    io.Reader
	n    int64
	told func(int64)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.told != nil {
		c.told(c.n)
	}
	return n, err
}
