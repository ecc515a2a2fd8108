package analytics

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

const importBatch = 5000

// Import reads an access log, plain or gzipped, in the formats of nginx,
// Apache and Caddy.
// It may be stopped at any time and called again: a view that is stored already
// is known by its content, whatever the log's name, length, beginning or
// compression, and also when the day's salt is gone. Of a log that can be sought in
// (a file), the part that an earlier import read is passed over (see position).
// progress receives how many bytes of r were used.
func (h *Handler) Import(ctx context.Context, log Log, r io.Reader, progress func(bytes int64)) (Imported, error) {
	var done Imported
	if h.NoCountries != nil { // what is stored without a country stays so
		return done, h.NoCountries
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return done, err
	}
	if log.Host == "" {
		log.Host = cmp.Or(h.ownHost(), "unknown")
	}
	in := importer{h: h, log: log, zone: zone, done: &done, equal: map[uint64]uint32{}}
	if h.KeepRaw > 0 {
		in.oldest = h.Now().Add(-h.KeepRaw)
	}
	text, err := in.open(ctx, &countingReader{r: r, told: progress})
	if err != nil {
		return done, fmt.Errorf("reading %s: %w", log.Name, err)
	}
	if err := in.run(ctx, text); err != nil {
		return done, err
	}
	return done, in.keepPosition(ctx)
}

func (in *importer) run(ctx context.Context, text *logText) error {
	for {
		in.known.pass(text)
		line, err := readLine(text.Reader)
		if errors.Is(err, io.EOF) {
			return in.flush(ctx)
		}
		if err != nil && !errors.Is(err, bufio.ErrTooLong) {
			return errors.Join(fmt.Errorf("reading %s after line %d: %w", in.log.Name, in.line, err), in.flush(ctx))
		}
		in.line++
		in.done.Lines++
		if err != nil {
			in.done.Bad++
		} else if err := in.add(ctx, line); err != nil {
			return err
		}
		if len(in.rows) >= importBatch {
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
		v.Host = in.log.Host
	}
	v.Nonce = in.nonce(v)
	r, err := in.h.row(ctx, v, in.zone)
	if err != nil {
		return err
	}
	in.rows = append(in.rows, r)
	in.done.Views++
	return nil
}

// maxEqual bounds the memory for digests: equal views that are further apart in
// a log than so many others are not distinguished.
const maxEqual = 200_000

// nonce is made of what the view is, and of how many like it came before in the
// log: the same view makes the same nonce in every copy of the log.
func (in *importer) nonce(v View) (n [8]byte) {
	digest := contentDigest(in.log.Server, v)
	if len(in.equal) >= maxEqual {
		in.older, in.equal = in.equal, map[uint64]uint32{}
	}
	before := max(in.equal[digest], in.older[digest])
	in.equal[digest] = before + 1
	binary.BigEndian.PutUint64(n[:], digest+uint64(before)*0x9e3779b97f4a7c15)
	return n
}

// contentDigest is a digest of a view and of the server that saw it. Nothing
// of the address is in it: it outlives the day's salt, and even a few bits of a
// hash would say which of a few known addresses it was. Visitors who do the same
// in the same second are distinguished by their number, see nonce.
func contentDigest(server string, v View) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00%s\x00%s\x00%s\x00%s\x00%v",
		server, v.At.UnixMilli(), cleanHost(v.Host), v.Path, v.Query, v.Referrer, v.Agent, v.Prefetch)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// flush writes the views that are not there yet.
func (in *importer) flush(ctx context.Context) error {
	before := len(in.rows)
	rows, err := in.h.absent(ctx, in.rows)
	if err != nil {
		return err
	}
	there := int64(before - len(rows))
	late, err := in.h.keep(ctx, rows)
	if err != nil {
		return err
	}
	in.done.Already += there
	in.done.TooOld += late
	in.done.Views -= late + there
	in.rows = in.rows[:0]
	return nil
}

// noncesAtOnce is how many nonces one statement looks up.
const noncesAtOnce = 500

// absent leaves out the rows whose day and nonce are stored. The visitor is no
// help: it is hashed with a salt that lives for 48 hours.
func (h *Handler) absent(ctx context.Context, rows []row) ([]row, error) {
	byDay := map[string][]row{}
	for _, r := range rows {
		byDay[r.day] = append(byDay[r.day], r)
	}
	fresh := rows[:0]
	for day, all := range byDay {
		for part := range slices.Chunk(all, noncesAtOnce) {
			known, err := h.nonces(ctx, day, part)
			if err != nil {
				return nil, err
			}
			for _, r := range part {
				if !known[r.nonce] {
					fresh = append(fresh, r)
				}
			}
		}
	}
	return fresh, nil
}

func (h *Handler) nonces(ctx context.Context, day string, rows []row) (map[[8]byte]bool, error) {
	args := []any{day}
	for i := range rows {
		args = append(args, rows[i].nonce[:])
	}
	query := "SELECT nonce FROM cmsjobs_page_views WHERE day = ? AND nonce IN (" + database.Marks(len(rows)) + ")"
	var found [][]byte
	if err := h.DB.SelectContext(ctx, &found, h.DB.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("looking for views that are stored already: %w", err)
	}
	known := map[[8]byte]bool{}
	for _, nonce := range found {
		if len(nonce) == 8 {
			known[[8]byte(nonce)] = true
		}
	}
	return known, nil
}
