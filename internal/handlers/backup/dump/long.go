package dump

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Long values are read and written in parts, so that a row of any size needs
// no more memory than a small one, here and in what restores it:
//
//	SET @cmsjobs_0 = '…';                       -- the parts, each far below max_allowed_packet
//	SET @cmsjobs_1 = '…';
//	SET @cmsjobs_v3 = CONCAT(@cmsjobs_0,@cmsjobs_1);
//	SET @cmsjobs_whole = 9223372036854775807 + (COALESCE(CHAR_LENGTH(@cmsjobs_v3),0) <> …);
//	REPLACE INTO … VALUES (1,'short',@cmsjobs_v3);
//
// MySQL 8 has deprecated := within expressions, not this form of SET (manual,
// User-Defined Variables), and the dump sets its sql_mode itself. A sum that
// overflows is an error in every mode (Out-of-Range and Overflow Handling). CONCAT of more than
// max_allowed_packet is NULL and only a warning; the sum that overflows makes it the error that it
// is. REPLACE, unlike INSERT, tells the Loader that a statement belongs to this session.
const (
	longValue = 4 << 20 // bytes, from which on a value is long
	longPart  = 2 << 20 // characters, or bytes of a binary value
)

// parted says whether the table's long values are read apart: there must be
// such columns, and a key by which a row is found again.
func (t tableInfo) parted() bool {
	if len(t.key) == 0 {
		return false
	}
	for _, c := range t.columns {
		if c.long {
			return true
		}
	}
	return false
}

// longExpression is 1 for a row with a long value.
func (t tableInfo) longExpression() string {
	var lengths []string
	for _, c := range t.columns {
		if c.long {
			lengths = append(lengths, fmt.Sprintf("COALESCE(OCTET_LENGTH(%s)>%d,0)", quoteName(c.name), longValue))
		}
	}
	return strings.Join(lengths, "+")
}

// where finds a row by its key.
func (t tableInfo) where(values []driver.Value) string {
	var terms []string
	for _, i := range t.key {
		terms = append(terms, quoteName(t.columns[i].name)+"="+string(appendValue(nil, t.columns[i].form, values[i])))
	}
	return " WHERE " + strings.Join(terms, " AND ")
}

// longRows writes the rows that rows left out: where finds each.
func (d *dumper) longRows(ctx context.Context, t tableInfo, where []string, entry *Table) (sum uint64, err error) {
	for _, w := range where {
		one, err := d.longRow(ctx, t, w)
		if err != nil {
			return 0, fmt.Errorf("a row with long values%.200s: %w", w, err)
		}
		sum += one
		entry.Rows++
		d.out.rows++
	}
	return sum, nil
}

// longRow writes one row and returns its hash.
func (d *dumper) longRow(ctx context.Context, t tableInfo, where string) (uint64, error) {
	lengths, err := d.longLengths(ctx, t, where)
	if err != nil {
		return 0, err
	}
	values, err := d.oneRow(ctx, d.selectRows(t)+where)
	if err != nil {
		return 0, err
	}
	sum := xxhash.New()
	row := []byte("(")
	for i, c := range t.columns {
		if i > 0 {
			row = append(row, ',')
		}
		if n := lengths[i]; n > 0 {
			row = fmt.Appendf(row, "@cmsjobs_v%d", i)
			if err := d.longValue(ctx, t, i, where, n, sum); err != nil {
				return 0, err
			}
			continue
		}
		row = appendValue(row, c.form, values[i])
	}
	row = append(row, ')')
	d.out.write([]byte("REPLACE" + strings.TrimPrefix(string(insertHead(t)), "INSERT")))
	d.out.write(row)
	d.out.string(";\n")
	_, _ = sum.Write(row) // a hash takes everything
	return sum.Sum64(), d.out.err()
}

// longLengths are the lengths of a row's long values in characters; 0 for the others.
func (d *dumper) longLengths(ctx context.Context, t tableInfo, where string) ([]int64, error) {
	lengths := make([]int64, len(t.columns))
	var ask []string
	for _, c := range t.columns {
		expression := "0"
		if c.long {
			name := quoteName(c.name)
			expression = fmt.Sprintf("IF(OCTET_LENGTH(%s)>%d,CHAR_LENGTH(%s),0)", name, longValue, name)
		}
		ask = append(ask, expression)
	}
	row, err := d.oneRow(ctx, "SELECT "+strings.Join(ask, ",")+" FROM "+quoteName(t.name)+where)
	for i := range row {
		lengths[i], _ = strconv.ParseInt(text(row[i]), 10, 64) // NULL has no length
	}
	return lengths, err
}

// longValue writes the statements that put a value together.
func (d *dumper) longValue(ctx context.Context, t tableInfo, column int, where string, length int64,
	sum *xxhash.Digest) error {
	c := t.columns[column]
	prefix := ""
	if c.form == binary {
		prefix = "_binary "
	}
	var names []string
	for at := int64(1); at <= length; at += longPart {
		row, err := d.oneRow(ctx, fmt.Sprintf("SELECT SUBSTRING(%s,%d,%d) FROM %s", quoteName(c.name), at, longPart,
			quoteName(t.name))+where)
		if err != nil {
			return err
		}
		part, ok := row[0].([]byte)
		if !ok {
			return fmt.Errorf("the column %s has no more text where it should", c.name)
		}
		_, _ = sum.Write(part)
		names = append(names, fmt.Sprintf("@cmsjobs_%d", len(names)))
		d.out.string("SET " + names[len(names)-1] + " = " + prefix)
		d.out.write(appendQuoted(make([]byte, 0, len(part)+len(part)/8), part))
		d.out.string(";\n")
		if err := d.out.err(); err != nil {
			return err
		}
	}
	whole := fmt.Sprintf("@cmsjobs_v%d", column)
	d.out.textf("SET %s = CONCAT(%s);\nSET @cmsjobs_whole = 9223372036854775807 + (COALESCE(CHAR_LENGTH(%s),0) <> "+
		"%d);\nSET %s = NULL;\n",
		whole, strings.Join(names, ","), whole, length, strings.Join(names, " = NULL, "))
	return nil
}

// oneRow runs a query for one row, whose values stay valid.
func (d *dumper) oneRow(ctx context.Context, query string) (row []driver.Value, err error) {
	err = d.each(ctx, query, func(values []driver.Value) error {
		row = make([]driver.Value, len(values))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = append([]byte{}, b...)
			}
			row[i] = v
		}
		return nil
	})
	if err == nil && row == nil {
		err = fmt.Errorf("it is not there any more, in one snapshot")
	}
	return row, err
}

// selectRows asks for single floats as doubles: printed as floats they lose
// digits (16777215 becomes 16777200). Long values are left out of a table that
// is parted, and a last column says in which rows. Rows that are read by their key come
// in its order without being sorted: InnoDB keeps them so.
func (s *session) selectRows(t tableInfo) string {
	parted := t.parted()
	var q strings.Builder
	q.WriteString("SELECT SQL_NO_CACHE ")
	for i, c := range t.columns {
		if i > 0 {
			q.WriteByte(',')
		}
		name := quoteName(c.name)
		switch {
		case c.float && s.castDouble:
			name = "CAST(" + name + " AS DOUBLE)"
		case c.float:
			name += "*1e0"
		case c.long && parted:
			name = fmt.Sprintf("IF(OCTET_LENGTH(%[1]s)>%[2]d,NULL,%[1]s)", name, longValue)
		}
		q.WriteString(name)
	}
	if parted {
		q.WriteString("," + t.longExpression())
	}
	q.WriteString(" FROM " + quoteName(t.name))
	if t.byKey {
		q.WriteString(" FORCE INDEX (PRIMARY)")
	}
	return q.String()
}
