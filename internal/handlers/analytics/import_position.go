package analytics

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

const (
	// checkedBytes of a log's beginning say which log it is, and as many at the
	// position say that it is the same up to there. Hundreds of lines have no address
	// that could be found from their digest.
	checkedBytes = 64 << 10
	// overlap is how much before its end a log is read again: views are distinguished by
	// their number among equal ones of a second, which are close together.
	overlap = 1 << 20
	// keepPositions is how long a log is known that nobody imports any more.
	keepPositions = 400 * 24 * time.Hour
)

func (t *logText) offset() int64 { return t.read.n - int64(t.Buffered()) }

// digest is that of the bytes that follow; "" where there are too few.
func (t *logText) digest(before ...string) string {
	next, err := t.Peek(checkedBytes)
	if err != nil {
		return ""
	}
	h := sha256.New()
	for _, text := range before {
		fmt.Fprintf(h, "%s\x00", text)
	}
	h.Write(next)
	return hex.EncodeToString(h.Sum(nil))
}

// plain undoes gzip where the bytes say so.
func plain(counted *countingReader) (t *logText, packed bool, err error) {
	r := bufio.NewReaderSize(counted, checkedBytes)
	magic, err := r.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return &logText{r, counted}, false, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, true, err
	}
	unpacked := &countingReader{r: z}
	return &logText{bufio.NewReaderSize(unpacked, checkedBytes), unpacked}, true, nil
}

// open begins to read a log: where an earlier import ended, if that can be found.
func (in *importer) open(ctx context.Context, counted *countingReader) (*logText, error) {
	text, packed, err := plain(counted)
	if err != nil {
		return nil, err
	}
	in.known.id = text.digest(in.log.Server, in.log.Host)
	file, can := counted.r.(io.Seeker)
	if in.known.id == "" || !can || in.log.Again {
		return text, nil
	}
	if err := in.h.position(ctx, &in.known); err != nil {
		return nil, err
	}
	p := in.known.stored
	if p.Offset == 0 || in.oldest.UnixMilli() < p.Oldest {
		return text, nil
	}
	if packed {
		_, err = io.CopyN(io.Discard, text, p.Offset)
	} else {
		text, err = counted.from(file, p.Offset)
	}
	if err == nil && text.digest() == p.Digest {
		in.done.Before = p.Offset
		return text, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if _, err = text.Peek(1); err == nil { // another text, not a shorter copy of this one
		in.known.stored = position{}
	}
	if _, err := counted.from(file, 0); err != nil {
		return nil, err
	}
	text, _, err = plain(counted)
	return text, err
}

// from reads a plain log from an offset.
func (c *countingReader) from(file io.Seeker, offset int64) (*logText, error) {
	_, err := file.Seek(offset, io.SeekStart)
	c.n = offset
	return &logText{bufio.NewReaderSize(c, checkedBytes), c}, err
}

// pass marks a place every overlap. It is called at the beginning of a line.
func (k *known) pass(text *logText) {
	if k.id == "" {
		return
	}
	if at := text.offset(); at >= k.marks[1].Offset+overlap {
		if digest := text.digest(); digest != "" {
			k.marks = [2]position{k.marks[1], {Offset: at, Digest: digest}}
		}
	}
}

func (h *Handler) position(ctx context.Context, k *known) error {
	var found []position
	err := h.DB.SelectContext(ctx, &found, h.DB.Rebind("SELECT read_to, digest, oldest FROM "+
		"cmsjobs_analytics_imports WHERE id = ?"), k.id)
	if err != nil {
		return fmt.Errorf("looking how far the log was read: %w", err)
	}
	if len(found) > 0 {
		k.stored = found[0]
	}
	return nil
}

// keepPosition writes down how far the log was read, all of whose views are stored.
func (in *importer) keepPosition(ctx context.Context) error {
	p := in.known.marks[0]
	if in.known.id == "" || p.Offset <= in.known.stored.Offset {
		return nil
	}
	p.Oldest = in.oldest.UnixMilli()
	now := in.h.Now()
	return database.InTx(ctx, in.h.DB, "writing down how far the log was read", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, tx.Rebind("DELETE FROM cmsjobs_analytics_imports WHERE id = ? OR read_at < ?"),
			in.known.id, now.Add(-keepPositions).UnixMilli())
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO cmsjobs_analytics_imports (id, read_to, digest, oldest, "+
			"read_at) VALUES (?, ?, ?, ?, ?)"),
			in.known.id, p.Offset, p.Digest, p.Oldest, now.UnixMilli())
		return err
	})
}
