package client

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// table is the jobs table as it was found: Laravel's own, or the extended one.
type table struct {
	dialect
	name     string // quoted
	payload  string // column
	extended bool
	kinds    map[string]string // types of columns by name
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

func readTable(ctx context.Context, q Tx, d dialect, name string) (table, error) {
	t := table{dialect: d, name: d.quote + name + d.quote, payload: "payload", kinds: map[string]string{}}
	if !safeName.MatchString(name) {
		return t, fmt.Errorf("the table name %q may have letters, digits and underscores only", name)
	}
	rows, err := q.QueryContext(ctx, d.bind(d.columns), name)
	if err != nil {
		return t, fmt.Errorf("reading the columns of %s: %w", name, err)
	}
	defer rows.Close()
	for rows.Next() {
		var column, kind string
		if err := rows.Scan(&column, &kind); err != nil {
			return t, fmt.Errorf("reading the columns of %s: %w", name, err)
		}
		t.kinds[strings.ToLower(column)] = strings.ToLower(kind)
	}
	if err := rows.Err(); err != nil {
		return t, fmt.Errorf("reading the columns of %s: %w", name, err)
	}
	if len(t.kinds) == 0 {
		return t,
			fmt.Errorf(
				"there is no table %s in the database: set Options.Prefix, or let "+
					`"cmsjobs migrate up --create-jobs" make it`, name)
	}
	need := []string{"id", "queue", "payload", "attempts", "available_at", "created_at"}
	if t.extended = t.has("payload_json") || t.has("status"); t.extended {
		t.payload = "payload_json"
		need = []string{"id", "queue", "name", "payload_json", "status", "priority", "run_at", "attempts",
			"max_attempts", "created_at"}
	}
	if missing := slices.DeleteFunc(need, t.has); len(missing) > 0 {
		return t, fmt.Errorf("the table %s lacks the columns %s: it is neither Laravel's jobs table nor the extended "+
			"one", name, strings.Join(missing, ", "))
	}
	return t, nil
}

func (t table) has(column string) bool { _, there := t.kinds[column]; return there }

// defaultAttempts stands in the extended table where a job names no limit. The
// service then goes by the type's, where that is lower.
const defaultAttempts = 3

// insert is the statement that writes a job, and its values.
func (t table) insert(e encoded, payload string) (string, []any) {
	columns, values := []string{"queue", t.payload, "attempts"}, []string{"?", "?", "0"}
	args := []any{e.Queue, payload}
	moment := func(column, seconds string) {
		columns, values = append(columns, column), append(values, t.moment(t.kinds[column], seconds))
	}
	if !t.extended {
		moment("available_at", t.due(e.RunAt))
	} else {
		attempts := e.MaxAttempts
		if attempts == 0 {
			attempts = defaultAttempts
		}
		columns, values = append(columns, "name", "status", "priority", "max_attempts"),
			append(values, "?", "'queued'", "?", "?")
		args = append(args, e.Type, e.Priority, attempts)
		moment("run_at", t.due(e.RunAt))
		if t.has("updated_at") {
			moment("updated_at", t.now)
		}
	}
	moment("created_at", t.now)
	return "INSERT INTO " + t.name + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		")", args
}

// due is an expression of Unix seconds. Nothing runs early.
func (t table) due(at time.Time) string {
	if at.IsZero() {
		return t.now
	}
	unix := at.Unix()
	if at.Nanosecond() > 0 {
		unix++
	}
	return fmt.Sprint(max(unix, 0))
}
