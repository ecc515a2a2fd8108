package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// effects looks at what the jobs left behind: what is published, drawn, mapped,
// added up, put aside and rung. Each line it returns is a violation.
func (l *lab) effects(ctx context.Context) (facts, wrong []string) {
	for _, look := range []func(context.Context) (string, []string, error){l.publications, l.pictures, l.sitemaps,
		l.sums, l.backups, l.ticks, l.foreign} {
		fact, faults, err := look(ctx)
		if err != nil {
			faults = append(faults, err.Error())
		}
		facts, wrong = append(facts, fact), append(wrong, faults...)
	}
	return facts, wrong
}

func (l *lab) publications(ctx context.Context) (string, []string, error) {
	var public, drafts int
	err := l.db.QueryRowContext(ctx, "SELECT COALESCE(SUM(status = 'published'), 0), COALESCE(SUM(status <> "+
		"'published'), 0) FROM posts WHERE name LIKE 'soak %'").Scan(&public, &drafts)
	var faults []string
	if lost := drafts - l.unasked("content.publish"); lost > 0 {
		faults = append(faults, fmt.Sprintf("%d posts are still drafts", lost))
	}
	return fmt.Sprintf("%d posts published", public), faults, err
}

// unasked counts the jobs of a kind whose INSERT nobody answered: their rows of
// the CMS may be there without them. (Preparing may have failed half way, too.)
func (l *lab) unasked(kind string) (n int) {
	for _, a := range l.load.asked {
		if a.kind == kind && !a.acked {
			n++
		}
	}
	return n + l.load.halves[kind]
}

// pictures looks for the thumbnails of every picture whose job was acknowledged.
func (l *lab) pictures(context.Context) (string, []string, error) {
	whole, faults := 0, []string{}
	for key, a := range l.load.asked {
		if a.kind != "media.processImage" || !a.acked {
			continue
		}
		for _, size := range []string{"150x150", "300x300", "800x*"} {
			pattern := l.upload(fmt.Sprintf("photos/soak-%d-%s.jpg", key, size))
			found, err := filepath.Glob(pattern)
			if err != nil || len(found) != 1 {
				faults = append(faults, fmt.Sprintf("%d files are %s", len(found), pattern))
			} else if info, err := os.Stat(found[0]); err != nil || info.Size() == 0 {
				faults = append(faults, found[0]+" is empty")
			}
		}
		whole++
	}
	return fmt.Sprintf("%d pictures with their thumbnails", whole), faults, nil
}

// sitemaps lets the program hold the last map against the CMS and the protocol.
func (l *lab) sitemaps(ctx context.Context) (string, []string, error) {
	out, err := l.cmsjobs(ctx, "sitemap", "check", "--json")
	if err != nil {
		return "", nil, err
	}
	var found struct {
		Files, URLs int
	}
	err = json.Unmarshal([]byte(out), &found)
	return fmt.Sprintf("%d addresses in %d sitemaps, all as in the CMS", found.URLs, found.Files), nil, err
}

// sums holds the roll-up against the lines that were imported.
func (l *lab) sums(ctx context.Context) (string, []string, error) {
	var raw, sum int
	if err := l.db.GetContext(ctx, &raw,
		"SELECT COUNT(*) FROM cmsjobs_page_views WHERE path LIKE '/blog/soak-%'"); err != nil {
		return "", nil, err
	}
	if err := l.db.GetContext(ctx, &sum, "SELECT COALESCE(SUM(views), 0) FROM cmsjobs_analytics_hourly"); err != nil {
		return "", nil, err
	}
	var others int
	if err := l.db.GetContext(ctx, &others, "SELECT COUNT(*) FROM cmsjobs_page_views WHERE kind = 'view' AND path "+
		"NOT LIKE '/blog/soak-%'"); err != nil {
		return "", nil, err
	}
	var faults []string
	if raw != l.load.views || sum != l.load.views+others {
		faults = append(faults, fmt.Sprintf("%d visits were imported; %d are kept, %d of %d added up", l.load.views,
			raw, sum, l.load.views+others))
	}
	return fmt.Sprintf("%d visits imported and added up", l.load.views), faults, nil
}

// backups reads back every archive under a final name.
func (l *lab) backups(ctx context.Context) (string, []string, error) {
	out, err := l.cmsjobs(ctx, "backup", "list", "--json")
	if err != nil {
		return "", nil, err
	}
	var list []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return "", nil, fmt.Errorf("reading the list of backups: %w: %.200s", err, out)
	}
	var faults []string
	for _, b := range list {
		if _, err := l.cmsjobs(ctx, "backup", "verify", b.ID); err != nil {
			faults = append(faults, err.Error())
		}
	}
	if len(list) == 0 {
		faults = append(faults, "there is no backup")
	}
	return fmt.Sprintf("%d backups kept, each read back", len(list)), faults, nil
}

// ticks looks at the schedule's entry of every minute: three schedulers ring, one
// of them with a wrong clock.
func (l *lab) ticks(ctx context.Context) (string, []string, error) {
	var ticks, uuids int
	var first, last int64
	err := l.db.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(DISTINCT uuid), COALESCE(MIN(tick), 0), "+
		"COALESCE(MAX(tick), 0) FROM cmsjobs_ticks WHERE entry = 'soak' AND outcome = 'enqueued' AND tick >= ?",
		l.begun.UnixMilli()).Scan(&ticks, &uuids, &first, &last)
	if err != nil {
		return "", nil, err
	}
	var faults []string
	minutes := int(time.UnixMilli(last).Sub(time.UnixMilli(first)).Minutes()) + 1
	if ticks != minutes || uuids != ticks {
		faults = append(faults, fmt.Sprintf("%d minutes had %d ticks and %d jobs", minutes, ticks, uuids))
	}
	if ahead := time.Until(time.UnixMilli(last)); ahead > 0 {
		faults = append(faults, fmt.Sprintf("a tick was rung %v before its time", ahead))
	}
	return fmt.Sprintf("%d ticks of an entry of every minute, each once", ticks), faults, nil
}
