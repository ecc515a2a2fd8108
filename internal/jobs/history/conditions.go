package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
)

// like is a condition that a text stands in one of the columns, ignoring case.
func (s *Store) like(text string, columns ...string) (string, []any) {
	word := s.tables.Dialect.Choose(database.Variants{MySQL: "LIKE", PostgreSQL: "ILIKE", SQLite: "LIKE"})
	pattern := "%" + escapeLike(text) + "%"
	var parts []string
	var args []any
	for _, c := range columns {
		parts = append(parts, fmt.Sprintf("%s %s ? ESCAPE '!'", c, word))
		args = append(args, pattern)
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

// escapeLike is a text as part of a pattern with ESCAPE '!'.
func escapeLike(text string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text)
}

// conditions collects what must all hold.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts, c.args = append(c.parts, part), append(c.args, args...)
}

func (c *conditions) in(column string, words []string) {
	if len(words) > 0 {
		part, args := database.InWords(column, words)
		c.add(part, args...)
	}
}

func (c *conditions) notIn(column string, words []string) {
	if len(words) > 0 {
		part, args := database.InWords(column, words)
		c.add("NOT ("+part+")", args...)
	}
}

func (c conditions) String() string { return cmp.Or(strings.Join(c.parts, " AND "), "1=1") }

// Filters by worker and by tag. No index has either: rows are searched for, a
// stretch at a time.

// ranOn says whether a worker is one of those named, or on a host that is.
func ranOn(worker string, names []string) bool {
	return worker != "" && slices.ContainsFunc(names, func(name string) bool {
		return worker == name || strings.HasPrefix(worker, name+":")
	})
}

// tagged says whether a waiting, running or failed job of PHP's has one of the tags.
func tagged(r jobs.Record, tags []string) bool {
	if !r.Foreign {
		return false
	}
	j := phpjob.Read(r.Payload)
	return slices.ContainsFunc(tags, func(t string) bool { return slices.Contains(j.Tags, t) })
}

// withWorkers completes rows by who runs or ran them, where the filter asks for it.
func (s *Store) withWorkers(ctx context.Context, f jobs.Filter, rows []record, err error) ([]record, error) {
	if err != nil || len(f.Workers) == 0 {
		return rows, err
	}
	records := each(rows, func(r record) jobs.Record { return r.Record })
	if err := s.addRest(ctx, records); err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Worker = records[i].Worker
	}
	return rows, nil
}

// ranBy adds what the filter says of workers and tags of runs in the history.
func (s *Store) ranBy(c *conditions, f jobs.Filter) {
	var workers, tags []string
	var args []any
	for _, name := range f.Workers {
		workers = append(workers, "worker = ? OR worker LIKE ? ESCAPE '!'")
		args = append(args, name, escapeLike(name)+":%")
	}
	if len(workers) > 0 {
		c.add("("+strings.Join(workers, " OR ")+")", args...)
	}
	args = []any{phpjob.Mark}
	for _, tag := range f.Tags {
		quoted, err := json.Marshal(tag) // as phpjob.Keep writes it
		if err != nil {
			continue
		}
		tags = append(tags, "data LIKE ? ESCAPE '!'")
		args = append(args, "%"+escapeLike(string(quoted))+"%")
	}
	if len(tags) > 0 {
		c.add("(metadata = ? AND ("+strings.Join(tags, " OR ")+"))", args...)
	}
}
