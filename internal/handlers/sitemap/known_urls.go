package sitemap

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
)

// The consumers of changes: each has addresses that it knows.
const (
	toIndexNow = "indexnow" // search engines accepted them
	toPurge    = "purge"    // caches in front of the site know them
)

// watermark is what a consumer knows: 13 bytes an address, sorted by hash, so that
// a million of them are 13 MB.
type watermark struct {
	consumer string
	hashes   []int64
	stamps   []uint32
	seen     []bool
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

// known reads what a consumer knows.
func (h *Handler) known(ctx context.Context, consumer string) (*watermark, error) {
	fail := func(err error) (*watermark, error) {
		return nil, fmt.Errorf("reading the addresses that %s knows: %w", consumer, err)
	}
	var n int
	if err := h.db.GetContext(ctx, &n, h.db.Rebind("SELECT COUNT(*) FROM cmsjobs_known_urls WHERE consumer = ?"),
		consumer); err != nil {
		return fail(err)
	}
	w := &watermark{consumer: consumer, hashes: make([]int64, 0, n), stamps: make([]uint32, 0, n)}
	rows, err := h.db.QueryContext(ctx, h.db.Rebind("SELECT hash, stamp FROM cmsjobs_known_urls WHERE consumer = ? "+
		"ORDER BY hash"), consumer)
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

// forgetURLs removes addresses of another host from what a consumer knows: the site
// has moved, and no search engine takes them in a call for its new host.
func (h *Handler) forgetURLs(ctx context.Context, consumer string, hashes []int64) error {
	return h.transact(ctx, func(tx *sqlx.Tx) error {
		for chunk := range slices.Chunk(hashes, perStatement) {
			if _, err := tx.ExecContext(ctx, h.db.Rebind("DELETE FROM cmsjobs_known_urls WHERE consumer = ? AND "+
				"hash IN ("+database.Marks(len(chunk))+")"), anys(consumer, chunk)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleted gives see the addresses that are known and are no longer there.
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
		query := "SELECT hash, url FROM cmsjobs_known_urls WHERE consumer = ? AND hash IN (" +
			database.Marks(len(chunk)) + ") ORDER BY hash"
		if err := h.db.SelectContext(ctx, &rows, h.db.Rebind(query), anys(w.consumer, chunk)...); err != nil {
			return fmt.Errorf("reading the addresses that %s knows: %w", w.consumer, err)
		}
		for _, r := range rows {
			if err := see(r.Hash, r.URL); err != nil {
				return err
			}
		}
	}
	return nil
}

// changedURL is one address that a consumer hears of.
type changedURL struct {
	hash  int64
	loc   string
	stamp uint32
	gone  bool
	post  string // its id, where it is a post's page
}

// note makes addresses known to a consumer.
func (h *Handler) note(ctx context.Context, consumer string, list []changedURL) error {
	return h.transact(ctx, func(tx *sqlx.Tx) error {
		now := h.now().UnixMilli()
		for chunk := range slices.Chunk(list, perStatement) {
			hashes := make([]int64, len(chunk))
			var rows []any
			for i, s := range chunk {
				hashes[i] = s.hash
				if !s.gone {
					rows = append(rows, consumer, s.hash, s.loc, int64(s.stamp), now)
				}
			}
			if _, err := tx.ExecContext(ctx, h.db.Rebind("DELETE FROM cmsjobs_known_urls WHERE consumer = ? AND "+
				"hash IN ("+database.Marks(len(hashes))+")"), anys(consumer, hashes)...); err != nil {
				return err
			}
			if len(rows) == 0 {
				continue
			}
			if _, err := tx.ExecContext(ctx, h.db.Rebind("INSERT INTO cmsjobs_known_urls (consumer, hash, url, stamp, "+
				"noted_at) VALUES "+database.Rows("(?, ?, ?, ?, ?)", len(rows)/5)), rows...); err != nil {
				return err
			}
		}
		return nil
	})
}

// anys are the arguments of a statement on a consumer's addresses.
func anys[T any](consumer string, list []T) []any {
	args := make([]any, 0, len(list)+1)
	args = append(args, consumer)
	for _, v := range list {
		args = append(args, v)
	}
	return args
}

// distinct leaves each address once: the last that was seen of it.
func distinct(list []changedURL) []changedURL {
	last := map[int64]int{}
	for i, u := range list {
		last[u.hash] = i
	}
	var once []changedURL
	for i, u := range list {
		if last[u.hash] == i {
			once = append(once, u)
		}
	}
	return once
}

// compare gives see what is new, changed or gone, and whether a gone one was known.
func (h *Handler) compare(ctx context.Context, p *plan, known *watermark,
	see func(u changedURL, known bool) error) error {
	skip := func(*cms.RowError) {} // sitemap.generate lists them
	for i := range p.groups {
		err := h.stream(ctx, p, &p.groups[i], skip, func(n *entry) error {
			hash, stamp := hashOf(n.loc), stampOf(n.modified)
			there, old := known.see(hash)
			if there && old == stamp {
				return nil
			}
			return see(changedURL{hash: hash, loc: n.loc, stamp: stamp, post: n.post}, there)
		})
		if err != nil {
			return err
		}
	}
	return h.deleted(ctx, known, func(hash int64, loc string) error {
		return see(changedURL{hash: hash, loc: loc, gone: true}, true)
	})
}
