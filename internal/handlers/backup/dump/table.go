package dump

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// insertSize is how long one INSERT becomes at most, but for its last row. It
// stays far below the smallest usual max_allowed_packet.
const insertSize = 1 << 20

// savepoint lets a table's metadata lock go once it is read: the site may
// alter a table while others are still being dumped.
const savepoint = "cmsjobs_dump"

func (d *dumper) table(ctx context.Context, t tableInfo) error {
	if _, err := d.conn.ExecContext(ctx, "SAVEPOINT "+savepoint); err != nil {
		return err
	}
	create, err := d.createTable(ctx, t.name)
	if err != nil {
		return err
	}
	d.out.start(Main, t.name)
	before := d.out.bytes
	d.out.textf("\n-- Table %s\nDROP TABLE IF EXISTS %s;\n%s;\n", commentName(t.name), quoteName(t.name), create)
	if d.options.CutByKey {
		d.out.flush() // it changes with the next AUTO_INCREMENT, and the first rows do not
	}
	entry := Table{Name: t.name, Engine: t.engine, Unsafe: !transactional(t.engine)}
	if entry.Empty = d.options.Empty != nil && d.options.Empty(t.name) || !HoldsRows(t.engine); !entry.Empty {
		if err := d.rows(ctx, t, &entry); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	if entry.Unsafe && !entry.Empty {
		d.warn("table %s (%s) has no snapshots: rows written during the dump may be in it or not", t.name, t.engine)
	}
	d.out.finish()
	entry.Bytes = d.out.bytes - before
	d.summary.Tables = append(d.summary.Tables, entry)
	if _, err := d.conn.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
		return err
	}
	return d.out.err()
}

func (d *dumper) createTable(ctx context.Context, name string) (string, error) {
	rows, err := d.texts(ctx, "SHOW CREATE TABLE "+quoteName(name))
	if err != nil || len(rows) != 1 || len(rows[0]) < 2 {
		return "", fmt.Errorf("reading how the table %s is made: %w", name, err)
	}
	create := d.unqualify(rows[0][1])
	d.addTable(name, create)
	return create, nil
}

func transactional(engine string) bool {
	switch strings.ToLower(engine) {
	case "innodb", "rocksdb", "tokudb", "ndbcluster":
		return true
	}
	return false
}

// HoldsRows is false for engines whose rows live in other tables or servers.
func HoldsRows(engine string) bool {
	switch strings.ToLower(engine) {
	case "mrg_myisam", "federated", "blackhole", "connect", "spider":
		return false
	}
	return true
}

// rows writes a table's rows as INSERTs of about 1 MB.
func (d *dumper) rows(ctx context.Context, t tableInfo, entry *Table) error {
	if len(t.columns) == 0 {
		return d.keylessRows(ctx, t, entry)
	}
	insert := insertHead(t)
	length := 0
	var sum uint64
	var row []byte
	var apart []string // finds the rows with long values
	err := d.each(ctx, d.selectRows(t), func(values []driver.Value) error {
		if len(values) > len(t.columns) && text(values[len(t.columns)]) != "0" {
			apart = append(apart, t.where(values))
			return nil
		}
		row = appendRow(row[:0], t.columns, values)
		sum += xxhash.Sum64(d.comparableRow(t, values, row, entry))
		entry.Rows++
		d.out.rows++
		switch {
		case length == 0:
			d.out.write(insert)
		case length+len(row) > insertSize:
			d.out.string(";\n")
			d.out.write(insert)
			length = 0
		default:
			d.out.string(",\n")
		}
		length += len(row)
		d.out.write(row)
		if d.options.CutByKey && t.endsPiece(values, row) {
			d.out.string(";\n")
			d.out.flush()
			length = 0
		}
		return d.out.err()
	})
	if err != nil {
		return err
	}
	if length > 0 {
		d.out.string(";\n")
	}
	long, err := d.longRows(ctx, t, apart, entry)
	if err != nil {
		return err
	}
	sum += long
	entry.Checksum = strconv.FormatUint(sum, 16)
	return nil
}

// keylessRows counts the rows of a table whose columns are all generated.
func (d *dumper) keylessRows(ctx context.Context, t tableInfo, entry *Table) error {
	return d.each(ctx, "SELECT 1 FROM "+quoteName(t.name), func([]driver.Value) error {
		entry.Rows++
		d.out.rows++
		d.out.textf("INSERT INTO %s () VALUES ();\n", quoteName(t.name))
		return d.out.err()
	})
}
