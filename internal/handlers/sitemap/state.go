package sitemap

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// fingerprint stands for all that a map is made of.
type fingerprint struct {
	sum  string
	rows int64
}

// layoutVersion is raised when the same content gives different files, or
// another note of them.
const layoutVersion = 2

func (h *Handler) fingerprint(ctx context.Context, p *plan) (fingerprint, error) {
	current := fingerprint{}
	sum := sha256.New()
	see := func(value any) error { return json.NewEncoder(sum).Encode(value) }
	day := ""
	for i := range p.groups {
		g := &p.groups[i]
		digests, err := h.site.ContentDigest(ctx, g.model, p.query(g))
		if err != nil {
			return current, err
		}
		if len(digests) > 0 {
			current.rows += digests[0].Rows
		}
		if err := see([]any{g.model, g.file, g.priority, g.frequency, digests, g.lists}); err != nil {
			return current, err
		}
	}
	if p.options.News {
		day = p.now.UTC().Format(time.DateOnly + "T15") // posts stop being news by the hour
	}
	err := see([]any{layoutVersion, p.perFile, p.botble, p.options, p.publication, p.summary, p.language, day,
		p.links.Root, p.links.Ending, p.links.Homepage, p.links.Languages, p.links.Home(p.lastLanguage()),
		p.links.Today()})
	current.sum = hex.EncodeToString(sum.Sum(nil))
	return current, err
}

// lastLanguage shows, in an address, whether the default one is hidden.
func (p *plan) lastLanguage() string {
	if len(p.links.Languages) == 0 {
		return ""
	}
	return p.links.Languages[0].Code
}

// unchanged says since when the map is as it would be now, "" when it is not.
func (h *Handler) unchanged(ctx context.Context, current fingerprint) (string, error) {
	last, err := h.recall(ctx, h.target.String())
	if err != nil || last.sum != current.sum {
		return "", err
	}
	if there, err := h.indexThere(ctx); err != nil || !there {
		return "", err
	}
	return "nothing changed since " + last.at.Format(time.RFC3339), nil
}

// Standing is how the site's content compares with what was made of it.
type Standing struct {
	// Content stands for the content as it is.
	Content string
	// Listed says that maps of the site are made: one was written, and the CMS has not
	// switched them off. Outdated is then whether the map has other content; else
	// whether caches know other content.
	Listed, Outdated bool
}

// Compare says how the site's content compares with the map that was last written, or,
// where none is made, with what was noted for caches.
func (h *Handler) Compare(ctx context.Context) (Standing, error) {
	p, err := h.plan(ctx)
	if err != nil {
		return Standing{}, err
	}
	current, err := h.fingerprint(ctx, p)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Content: current.sum}
	last, err := h.recall(ctx, h.target.String())
	if err != nil {
		return s, err
	}
	if s.Listed = p.enabled && last.sum != ""; !s.Listed {
		last, err = h.recall(ctx, toPurge)
	}
	s.Outdated = err == nil && last.sum != current.sum
	return s, err
}

// indexThere is false when what was published was removed, or replaced by another
// program's.
func (h *Handler) indexThere(ctx context.Context) (bool, error) {
	f, err := h.target.open(ctx, indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the sitemap: %w", err)
	}
	return carriesMarker(indexName, f), f.Close()
}

// remembered is what remember kept: of what, told how, and when.
type remembered struct {
	sum, summary string
	at           time.Time
}

// recall is the zero value when nothing was kept.
func (h *Handler) recall(ctx context.Context, what string) (r remembered, err error) {
	var millis int64
	query := h.db.Rebind("SELECT fingerprint, summary, generated_at FROM cmsjobs_sitemap_state WHERE target = ?")
	err = h.db.QueryRowContext(ctx, query, stateKey(what)).Scan(&r.sum, &r.summary, &millis)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("reading the last sitemap's state: %w", err)
	}
	r.at = time.UnixMilli(millis).UTC()
	return r, nil
}

func (h *Handler) remember(ctx context.Context, what string, current fingerprint, result any) error {
	summary, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encoding what was done: %w", err)
	}
	return h.transact(ctx, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, h.db.Rebind("DELETE FROM cmsjobs_sitemap_state WHERE target = ?"),
			stateKey(what)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, h.db.Rebind("INSERT INTO cmsjobs_sitemap_state (target, fingerprint, summary, "+
			"generated_at) VALUES (?, ?, ?, ?)"),
			stateKey(what), current.sum, string(summary), h.now().UnixMilli())
		return err
	})
}

func (h *Handler) forget(ctx context.Context) error {
	if _, err := h.db.ExecContext(ctx, h.db.Rebind("DELETE FROM cmsjobs_sitemap_state WHERE target = ?"),
		stateKey(h.target.String())); err != nil {
		return fmt.Errorf("forgetting the last sitemap's state: %w", err)
	}
	return nil
}

func (h *Handler) transact(ctx context.Context, do func(*sqlx.Tx) error) error {
	return database.InTx(ctx, h.db, "writing the sitemap's state", do)
}

// stateKey fits its column: long paths are hashed.
func stateKey(what string) string {
	if len(what) <= 191 {
		return what
	}
	sum := sha256.Sum256([]byte(what))
	return strings.ToValidUTF8(what[:100], "") + hex.EncodeToString(sum[:16])
}
