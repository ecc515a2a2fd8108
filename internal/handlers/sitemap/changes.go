package sitemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Changes are the addresses that are new, changed or gone since they were last
// noted for the caches in front of the site.
type Changes struct {
	URLs []string
	// Lists are addresses of pages that list those: of posts the categories with those
	// above them, the tags, the authors, the page of all posts, and front pages.
	Lists []string
	// More says that there are more than were asked for.
	More bool

	list    []changedURL
	first   bool // nothing was noted yet
	began   time.Time
	content fingerprint // of all; none where only some rows were looked at
}

// ChangesToPurge compares the site with what was noted, address by address. Where
// nothing was noted yet, nothing has changed. It notes nothing: NoteChanges does.
func (h *Handler) ChangesToPurge(ctx context.Context, most int) (Changes, error) {
	c := Changes{began: h.now()}
	p, err := h.plan(ctx)
	if err != nil {
		return c, err
	}
	if c.content, err = h.fingerprint(ctx, p); err != nil {
		return c, err
	}
	known, err := h.known(ctx, toPurge)
	if err != nil {
		return c, err
	}
	if len(known.hashes) == 0 {
		c.first = true
		return c, nil
	}
	err = h.compare(ctx, p, known, func(u changedURL, _ bool) error {
		if len(c.list) == most {
			c.More = true
			return errEnough
		}
		c.list = append(c.list, u)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return c, err
	}
	return c, h.complete(ctx, p, &c)
}

// mostLists bounds the pages that list what changed.
const mostLists = 500

// complete names the addresses of what changed, and of what lists it. Of what is gone
// nobody knows any more which lists had it.
func (h *Handler) complete(ctx context.Context, p *plan, c *Changes) error {
	c.list = distinct(c.list) // two rows of the CMS may have one address
	var posts []string
	for _, u := range c.list {
		c.URLs = append(c.URLs, u.loc)
		if u.post != "" {
			posts = append(posts, u.post)
		}
	}
	if c.More || len(posts) == 0 {
		return nil
	}
	lists, err := h.site.ListsOf(ctx, posts, mostLists+1)
	if err != nil {
		return err
	}
	for i := range p.groups {
		g := p.groups[i]
		if g.ids = lists[g.model.Name]; g.ids == nil {
			continue
		}
		if err := h.stream(ctx, p, &g, func(*cms.RowError) {}, func(n *entry) error {
			c.Lists = append(c.Lists, n.loc)
			return nil
		}); err != nil {
			return err
		}
	}
	authors, err := h.site.AuthorsOf(ctx, posts, p.links, mostLists+1)
	if err != nil {
		return err
	}
	c.Lists = append(c.Lists, authors...)
	if len(p.links.Languages) > 1 { // else it is the root, which is purged in any case
		for _, l := range p.links.Languages {
			c.Lists = append(c.Lists, p.links.Home(l.Code))
		}
	}
	c.More = len(c.Lists) > mostLists
	return nil
}

// ChangesOfRows compares the pages of some rows, each TABLE:ID, with what was noted. It
// costs as much for a large site as for a small one. What is public no more, and
// former addresses, only ChangesToPurge finds.
func (h *Handler) ChangesOfRows(ctx context.Context, rows []string) (Changes, error) {
	c := Changes{began: h.now()}
	p, err := h.plan(ctx)
	if err != nil {
		return c, err
	}
	var list []changedURL
	for i := range p.groups {
		g := p.groups[i]
		for _, row := range rows {
			if id, of := strings.CutPrefix(row, h.site.Table(g.model.Table)+":"); of {
				g.ids = append(g.ids, id)
			}
		}
		if g.ids == nil {
			continue
		}
		if err := h.stream(ctx, p, &g, func(*cms.RowError) {}, func(n *entry) error {
			list = append(list, changedURL{hash: hashOf(n.loc), loc: n.loc, stamp: stampOf(n.modified), post: n.post})
			return nil
		}); err != nil {
			return c, err
		}
	}
	if len(list) == 0 {
		return c, nil
	}
	if c.list, err = h.unknown(ctx, toPurge, list); err != nil {
		return c, err
	}
	return c, h.complete(ctx, p, &c)
}

// unknown leaves those that a consumer does not know so; none where it knows nothing yet.
func (h *Handler) unknown(ctx context.Context, consumer string, list []changedURL) ([]changedURL, error) {
	var noted int
	err := h.db.GetContext(ctx, &noted, h.db.Rebind("SELECT COUNT(*) FROM (SELECT 1 AS one FROM cmsjobs_known_urls "+
		"WHERE consumer = ? LIMIT 1) k"), consumer)
	if err != nil || noted == 0 {
		return nil, err
	}
	stamps := map[int64]uint32{}
	for chunk := range slices.Chunk(list, perStatement) {
		hashes := make([]int64, len(chunk))
		for i, u := range chunk {
			hashes[i] = u.hash
		}
		var known []struct{ Hash, Stamp int64 }
		if err := h.db.SelectContext(ctx, &known, h.db.Rebind("SELECT hash, stamp FROM cmsjobs_known_urls WHERE "+
			"consumer = ? AND hash IN ("+database.Marks(len(hashes))+")"), anys(consumer, hashes)...); err != nil {
			return nil, fmt.Errorf("reading the addresses that %s knows: %w", consumer, err)
		}
		for _, k := range known {
			stamps[k.Hash] = uint32(k.Stamp)
		}
	}
	return slices.DeleteFunc(list, func(u changedURL) bool {
		stamp, known := stamps[u.hash]
		return known && stamp == u.stamp
	}), nil
}

// errEnough ends a comparison.
var errEnough = errors.New("more than asked for")

// NoteChanges says that the changes were purged.
func (h *Handler) NoteChanges(ctx context.Context, c Changes) error {
	if err := h.noteChanges(ctx, c); err != nil || c.content.sum == "" {
		return err
	}
	return h.remember(ctx, toPurge, c.content, struct{}{})
}

func (h *Handler) noteChanges(ctx context.Context, c Changes) error {
	if !c.More && !c.first {
		return h.note(ctx, toPurge, c.list)
	}
	p, err := h.plan(ctx)
	if err != nil {
		return err
	}
	known, err := h.known(ctx, toPurge)
	if err != nil {
		return err
	}
	return h.noteSite(ctx, p, known, c.began)
}

// noteSite notes all that changed before a moment. What changes later is found by
// the next comparison.
func (h *Handler) noteSite(ctx context.Context, p *plan, known *watermark, before time.Time) error {
	var list []changedURL
	flush := func() error {
		err := h.note(ctx, known.consumer, distinct(list))
		list = list[:0]
		return err
	}
	err := h.compare(ctx, p, known, func(u changedURL, _ bool) error {
		if int64(u.stamp) >= before.Unix() {
			return nil
		}
		if list = append(list, u); len(list) < 10*perStatement {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
