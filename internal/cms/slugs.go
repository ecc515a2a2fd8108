package cms

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// slugs reads the slugs of a batch that is not empty.
func (r *reader) slugs(ctx context.Context, b *batch) error {
	quote, prefix := r.site.quote, "NULL"
	if r.prefix {
		prefix = quote("prefix")
	}
	where, args := r.among(b.rows)
	text := fmt.Sprintf("SELECT reference_id, id, %s, %s FROM %s WHERE reference_type = ? AND %s", quote("key"),
		prefix, quote(r.site.Table("slugs")), where)
	rows, err := r.site.DB.QueryContext(ctx, r.site.DB.Rebind(text), append([]any{r.model.Class}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var reference, id, key, before sql.RawBytes
	last := ""
	for rows.Next() {
		if err := rows.Scan(&reference, &id, &key, &before); err != nil {
			return err
		}
		i := b.find(reference)
		if i < 0 {
			continue
		}
		if string(before) != last { // nearly all rows have the same prefix
			last = string(before)
		}
		b.slug(i, id, key, last)
	}
	b.settleSlugs()
	return rows.Err()
}

// older says whether an id was given before another.
func older(a, b string) bool { return byAge(a, b) < 0 }

// byAge orders ids: numbers by value, others by their bytes.
func byAge(a, b string) int {
	if n := cmp.Compare(len(a), len(b)); n != 0 {
		return n
	}
	return strings.Compare(a, b)
}

// among is the condition for rows that refer to a batch. A range costs less
// than a list, unless other content's rows lie between.
func (r *reader) among(batch []row) (string, []any) {
	first, last := batch[0].id, batch[len(batch)-1].id
	if !r.numeric {
		args := make([]any, len(batch))
		for i := range batch {
			args[i] = batch[i].id
		}
		return "reference_id IN (" + database.Marks(len(args)) + ")", args
	}
	low, err1 := strconv.ParseInt(first, 10, 64)
	high, err2 := strconv.ParseInt(last, 10, 64)
	if err1 == nil && err2 == nil && high-low <= int64(4*len(batch)) {
		return "reference_id >= ? AND reference_id <= ?", []any{low, high}
	}
	list := make([]string, len(batch))
	for i := range batch {
		list[i] = batch[i].id // a number, as the column is one
	}
	return "reference_id IN (" + strings.Join(list, ", ") + ")", nil
}
