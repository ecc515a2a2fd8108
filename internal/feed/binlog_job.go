package feed

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// columnsOf are the columns of the jobs table by their names in lower case, from 0: the log
// has them by their places only. A claim compares what is made of them with the table, so
// a wrong place costs a look, no more.
func (b *Binlog) columnsOf(ctx context.Context, db *sqlx.DB) (map[string]int, error) {
	var names []string
	if err := db.SelectContext(ctx, &names, "SELECT COLUMN_NAME FROM information_schema.COLUMNS "+
		"WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION", b.Schema, b.Table); err != nil {
		return nil, err
	}
	columns := make(map[string]int, len(names))
	for i, name := range names {
		columns[strings.ToLower(name)] = i
	}
	return columns, nil
}

// jobIn is the row of an event that inserts one job, as workers hear of it: its queue, and
// in the next line the row (see tables.Sent). PHP's jobs, delayed ones and rows of other
// shapes than Laravel's have none.
func jobIn(e *replication.RowsEvent, columns map[string]int) (job string, ok bool) {
	if len(e.Rows) != 1 || len(e.Rows[0]) != len(columns) {
		return "", false
	}
	value := func(column string) any {
		if i, there := columns[column]; there {
			return e.Rows[0][i]
		}
		return nil
	}
	id, due, created := number(value("id")), number(value("available_at")), number(value("created_at"))
	queue, payload := text(value("queue")), text(value("payload"))
	if id <= 0 || due > created || queue == "" || strings.Contains(queue, "\n") ||
		strings.Contains(payload, tables.PHPJob) {
		return "", false
	}
	row, err := json.Marshal(map[string]any{"id": id, "payload": payload, "available_at": due, "created_at": created})
	if err != nil || len(row)+len(queue) > knockBytes-2 {
		return "", false
	}
	return queue + "\n" + string(row), true
}

// number is a value of the log as a number, without its sign: the log does not say which
// columns have one. 0 is none.
func number(value any) int64 {
	switch n := value.(type) {
	case int32:
		return int64(uint32(n)) //nolint:gosec // Unix seconds after 2038 are negative here
	case int64:
		return n
	}
	return 0
}

func text(value any) string {
	switch s := value.(type) {
	case string:
		return s
	case []byte:
		return string(s)
	}
	return ""
}
