package sitemap

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// watermark is what search engines have accepted: 13 bytes an address, sorted
// by hash, so that a million of them are 13 MB.
type watermark struct {
	hashes []int64
	stamps []uint32
	seen   []bool
}

// see looks an address up and marks it as still there.
func (w *watermark) see(hash int64) (known bool, stamp uint32) {
	i, found := slices.BinarySearch(w.hashes, hash)
	if !found {
		return false, 0
	}
	w.seen[i] = true
	return true, w.stamps[i]
}

func hashOf(loc string) int64 {
	h := fnv.New64a()
	h.Write([]byte(loc))
	return int64(h.Sum64())
}

func stampOf(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(t.Unix())
}

func (h *Handler) accepted(ctx context.Context) (*watermark, error) {
	fail := func(err error) (*watermark, error) {
		return nil, fmt.Errorf("reading what IndexNow accepted: %w", err)
	}
	var n int
	if err := h.db.GetContext(ctx, &n, "SELECT COUNT(*) FROM cmsjobs_indexnow_urls"); err != nil {
		return fail(err)
	}
	w := &watermark{hashes: make([]int64, 0, n), stamps: make([]uint32, 0, n)}
	rows, err := h.db.QueryContext(ctx, "SELECT hash, stamp FROM cmsjobs_indexnow_urls ORDER BY hash")
	if err != nil {
		return fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var hash, stamp int64
		if err := rows.Scan(&hash, &stamp); err != nil {
			return fail(err)
		}
		w.hashes, w.stamps = append(w.hashes, hash), append(w.stamps, uint32(stamp))
	}
	if err := rows.Err(); err != nil {
		return fail(err)
	}
	w.seen = make([]bool, len(w.hashes))
	return w, nil
}

// perStatement is how many rows one statement writes or asks for.
const perStatement = 500

// forgetURLs removes addresses of another host from what was accepted: the site
// has moved, and no search engine takes them in a call for its new host.
func (h *Handler) forgetURLs(ctx context.Context, hashes []int64) error {
	return h.transact(ctx, func(tx *sqlx.Tx) error {
		for chunk := range slices.Chunk(hashes, perStatement) {
			if _, err := tx.ExecContext(ctx, h.db.Rebind("DELETE FROM cmsjobs_indexnow_urls WHERE hash IN ("+
				database.Marks(len(chunk))+")"), anys(chunk)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleted gives see the addresses that were accepted and are no longer there.
func (h *Handler) deleted(ctx context.Context, w *watermark, see func(hash int64, loc string) error) error {
	var gone []int64
	for i, seen := range w.seen {
		if !seen {
			gone = append(gone, w.hashes[i])
		}
	}
	for chunk := range slices.Chunk(gone, perStatement) {
		var rows []struct {
			Hash int64  `db:"hash"`
			URL  string `db:"url"`
		}
		query := "SELECT hash, url FROM cmsjobs_indexnow_urls WHERE hash IN (" + database.Marks(len(chunk)) +
			") ORDER BY hash"
		if err := h.db.SelectContext(ctx, &rows, h.db.Rebind(query), anys(chunk)...); err != nil {
			return fmt.Errorf("reading what IndexNow accepted: %w", err)
		}
		for _, r := range rows {
			if err := see(r.Hash, r.URL); err != nil {
				return err
			}
		}
	}
	return nil
}

// submitted is one address on its way.
type submitted struct {
	hash  int64
	loc   string
	stamp uint32
	gone  bool
}

// accept notes that search engines have these addresses.
func (h *Handler) accept(ctx context.Context, list []submitted) error {
	return h.transact(ctx, func(tx *sqlx.Tx) error {
		now := h.now().UnixMilli()
		for chunk := range slices.Chunk(list, perStatement) {
			hashes := make([]int64, len(chunk))
			var rows []any
			for i, s := range chunk {
				hashes[i] = s.hash
				if !s.gone {
					rows = append(rows, s.hash, s.loc, int64(s.stamp), now)
				}
			}
			if _, err := tx.ExecContext(ctx, h.db.Rebind("DELETE FROM cmsjobs_indexnow_urls WHERE hash IN ("+
				database.Marks(len(hashes))+")"), anys(hashes)...); err != nil {
				return err
			}
			if len(rows) == 0 {
				continue
			}
			if _, err := tx.ExecContext(ctx, h.db.Rebind("INSERT INTO cmsjobs_indexnow_urls (hash, url, stamp, "+
				"submitted_at) VALUES "+database.Rows("(?, ?, ?, ?)", len(rows)/4)), rows...); err != nil {
				return err
			}
		}
		return nil
	})
}

func anys[T any](list []T) []any {
	args := make([]any, len(list))
	for i, v := range list {
		args[i] = v
	}
	return args
}
