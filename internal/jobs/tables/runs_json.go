package tables

import (
	"context"
	"fmt"
	"strconv"
)

// Most lines of a batch differ in a few values only. MariaDB and MySQL then read
// those out of one JSON text and repeat the others: a statement of half the
// length, which MariaDB takes in two thirds of the time that VALUES take, MySQL
// in four fifths.

// sharedRun is what such lines have in common.
type sharedRun struct {
	jobType, queue, outcome, worker, lease string
	attempt                                int64
	data                                   bool // each has data
}

// FewAlike is from how many lines on a JSON text is worth it.
const FewAlike = 8

// FewInsertions are the INSERTs of many lines. now is SQL.
func (s *Tables) FewInsertions(lines []RunRow, now string) (statements []string, args []any) {
	if !s.JSONTable || len(lines) < FewAlike {
		statement, args := s.insertion(lines, now)
		return []string{statement}, args
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
		if len(groups[key]) < FewAlike {
			rest = append(rest, groups[key]...)
			continue
		}
		statement, more := key.insertion(groups[key], now)
		statements, args = append(statements, statement), append(args, more...)
	}
	if len(rest) > 0 {
		statement, more := s.insertion(rest, now)
		statements, args = append(statements, statement), append(args, more...)
	}
	return statements, args
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

// insertion is the INSERT of lines that share r.
func (r sharedRun) insertion(lines []RunRow, now string) (string, []any) {
	into, read, column := "", "", ""
	if r.data {
		into, read, column = ", data", ", x", ", x LONGTEXT PATH '$[5]'"
	}
	b := make([]byte, 0, 2+70*len(lines))
	for i := range lines {
		b = lines[i].appendJSON(append(b, ','))
	}
	b[0] = '['
	return "INSERT INTO cmsjobs_runs (" + runColumns + into + ") SELECT j, u, ?, ?, " +
			strconv.FormatInt(r.attempt, 10) + ", ?, ?, ?, " + now + ", d, w, c" + read + " FROM " +
			"JSON_TABLE(?, '$[*]' COLUMNS (j BIGINT PATH '$[0]', u VARCHAR(191) PATH '$[1]', d BIGINT PATH '$[2]', w " +
			"BIGINT PATH '$[3]', c BIGINT PATH '$[4]'" + column + ")) t",
		[]any{r.jobType, r.queue, r.outcome, r.worker, r.lease, string(append(b, ']'))}
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
