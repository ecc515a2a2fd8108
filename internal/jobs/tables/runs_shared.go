package tables

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Most lines of a batch differ in a few values only. Those are then read out of a table that
// the statement brings along, and the others are repeated. MariaDB and MySQL read one JSON
// text: a statement of half the length, which MariaDB takes in two thirds of the time that
// VALUES take, MySQL in four fifths. SQLite reads VALUES with one parameter
// a line in place of seven, in about half the time.

// sharedRun is what such lines have in common.
type sharedRun struct {
	jobType, queue, outcome, worker, lease string
	attempt                                int64
	data                                   bool // each has data
}

// FewAlike is from how many lines on such a table is worth it.
const FewAlike = 8

// runInsert is an INSERT of some lines.
type runInsert struct {
	statement string
	args      []any
}

// FewInsertions are the INSERTs of many lines. now is SQL.
func (s *Tables) FewInsertions(lines []RunRow, now string) (statements []string, args []any) {
	for _, x := range s.insertions(lines, now) {
		statements, args = append(statements, x.statement), append(args, x.args...)
	}
	return statements, args
}

func (s *Tables) insertions(lines []RunRow, now string) (list []runInsert) {
	if !s.JSONTable && !s.Dialect.ValuesTable || len(lines) < FewAlike {
		return []runInsert{s.insertion(lines, now)}
	}
	groups, order, rest := map[sharedRun][]RunRow{}, []sharedRun{}, []RunRow(nil)
	for i := range lines {
		l := &lines[i]
		if !l.short() {
			rest = append(rest, *l)
			continue
		}
		key := sharedRun{l.jobType, l.queue, l.outcome, l.worker, l.lease, l.attempt, l.texts[2] != nil}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], *l)
	}
	for _, key := range order {
		switch {
		case len(groups[key]) < FewAlike:
			rest = append(rest, groups[key]...)
		case s.JSONTable:
			list = append(list, key.insertJSON(groups[key], now))
		default:
			list = append(list, key.insertValues(groups[key], now))
		}
	}
	if len(rest) > 0 {
		list = append(list, s.insertion(rest, now))
	}
	return list
}

// short says that a line has no error, result or metadata, and an UUID that needs
// no quoting in JSON.
func (l *RunRow) short() bool {
	if l.texts[0] != nil || l.texts[1] != nil || l.texts[3] != nil {
		return false
	}
	for i := range len(l.uuid) {
		c := l.uuid[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' {
			return false
		}
	}
	return true
}

// insert is the INSERT of lines that share r. own names what they do not share: the job, its
// UUID, how long it ran and waited, when it was made, and its data; from is where they are.
func (r sharedRun) insert(now string, own [6]string, from string, args ...any) runInsert {
	columns, values := runColumns, []string{own[0], own[1], "?", "?", strconv.FormatInt(r.attempt, 10), "?", "?", "?",
		now, own[2], own[3], own[4]}
	if r.data {
		columns, values = columns+", data", append(values, own[5])
	}
	statement := "INSERT INTO cmsjobs_runs (" + columns + ") SELECT " + strings.Join(values, ", ") + " FROM " + from
	return runInsert{statement, append([]any{r.jobType, r.queue, r.outcome, r.worker, r.lease}, args...)}
}

func (r sharedRun) insertJSON(lines []RunRow, now string) runInsert {
	column := ""
	if r.data {
		column = ", x LONGTEXT PATH '$[5]'"
	}
	b := make([]byte, 0, 2+70*len(lines))
	for i := range lines {
		b = lines[i].appendJSON(append(b, ','))
	}
	b[0] = '['
	return r.insert(now, [6]string{"j", "u", "d", "w", "c", "x"}, "JSON_TABLE(?, '$[*]' COLUMNS "+
		"(j BIGINT PATH '$[0]', u VARCHAR(191) PATH '$[1]', d BIGINT PATH '$[2]', w BIGINT PATH '$[3]', "+
		"c BIGINT PATH '$[4]'"+column+")) t", string(append(b, ']')))
}

func (r sharedRun) insertValues(lines []RunRow, now string) runInsert {
	b, args := make([]byte, 0, 10+40*len(lines)), make([]any, 0, 2*len(lines))
	for i := range lines {
		l := &lines[i]
		b = append(strconv.AppendInt(append(b, ",("...), l.job, 10), ",?"...)
		for _, n := range [3]int64{l.duration, l.wait, l.created} {
			b = strconv.AppendInt(append(b, ','), n, 10)
		}
		args = append(args, l.uuid)
		if r.data {
			b, args = append(b, ",?"...), append(args, l.text(2))
		}
		b = append(b, ')')
	}
	return r.insert(now, [6]string{"column1", "column2", "column3", "column4", "column5", "column6"},
		"(VALUES "+string(b[1:])+")", args...)
}

// appendJSON writes what a short line does not share.
func (l *RunRow) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, '['), l.job, 10)
	b = append(append(append(b, `,"`...), l.uuid...), `",`...)
	b = append(strconv.AppendInt(b, l.duration, 10), ',')
	b = append(strconv.AppendInt(b, l.wait, 10), ',')
	b = strconv.AppendInt(b, l.created, 10)
	if l.texts[2] != nil {
		b = appendQuoted(append(b, ','), *l.texts[2])
	}
	return append(b, ']')
}

// appendQuoted writes a text as a JSON string. It escapes as little as it may,
// as the driver escapes the escapes once more.
func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// ProbeJSONTable asks the server whether it has JSON_TABLE: MariaDB 10.6, MySQL
// 8.0 and later do.
func (s *Tables) ProbeJSONTable(ctx context.Context) {
	var n int
	_, err := s.QueryRow(ctx, s.DB, []any{&n}, "SELECT j FROM JSON_TABLE('[[1]]', '$[*]' COLUMNS (j BIGINT PATH "+
		"'$[0]')) t")
	s.JSONTable = err == nil && n == 1
}
