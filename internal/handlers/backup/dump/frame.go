package dump

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// EndMark is the last line of Main: a file without it is torn.
const EndMark = "-- cmsjobs: end of dump"

// settings are what a restoring session needs. An odd value needs each: 0 in
// an AUTO_INCREMENT column, '2024-02-30' in a DATE, a row before the row that
// it refers to. Every INSERT, of 1 MB, is its own transaction: one a table
// makes MariaDB build the indexes in temporary files, which takes half as long again.
const settings = `SET NAMES utf8mb4;
SET @old_time_zone = @@time_zone, time_zone = '+00:00';
SET @old_unique_checks = @@unique_checks, unique_checks = 0;
SET @old_foreign_key_checks = @@foreign_key_checks, foreign_key_checks = 0;
SET @old_sql_mode = @@sql_mode, sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';
`

const restoreSettings = `SET sql_mode = @old_sql_mode;
SET foreign_key_checks = @old_foreign_key_checks;
SET unique_checks = @old_unique_checks;
SET time_zone = @old_time_zone;
`

func (d *dumper) header() {
	d.out.textf("-- cmsjobs dump of %s, %s, server %s\n-- Restore with: mariadb --default-character-set=utf8mb4 "+
		"DATABASE < FILE\n\n",
		commentName(d.database), d.summary.Snapshot.Format(time.RFC3339), d.server)
	d.out.string(settings)
}

func (d *dumper) footer() {
	d.out.string("\nCOMMIT;\n" + restoreSettings + EndMark + "\n")
}

// sequence writes a MariaDB sequence before the tables whose defaults use it.
func (d *dumper) sequence(ctx context.Context, name string) error {
	rows, err := d.texts(ctx, "SHOW CREATE SEQUENCE "+quoteName(name))
	if err != nil || len(rows) != 1 {
		return fmt.Errorf("reading how the sequence %s is made: %w", name, err)
	}
	state, err := d.texts(ctx, "SELECT next_not_cached_value, cycle_count FROM "+quoteName(name))
	if err != nil || len(state) != 1 {
		return fmt.Errorf("reading the sequence %s: %w", name, err)
	}
	d.addText("sequence", name, rows[0][1], "", "")
	d.out.textf("\n-- Sequence %s\nDROP SEQUENCE IF EXISTS %s;\n%s;\nDO SETVAL(%s, %s, 0, %s);\n",
		commentName(name), quoteName(name), rows[0][1], quoteName(name), state[0][0], state[0][1])
	return d.out.err()
}

type view struct {
	viewInfo
	create    string
	collation string
}

// views reads how views are made and parts those that the main file can hold
// from those that call a stored function, which comes later.
func (d *dumper) views(ctx context.Context, c catalog, functions []string) (early, late []view, err error) {
	for _, info := range c.views {
		rows, err := d.texts(ctx, "SHOW CREATE VIEW "+quoteName(info.name))
		if err != nil || len(rows) != 1 || len(rows[0]) < 4 {
			return nil, nil, fmt.Errorf("reading how the view %s is made: %w", info.name, err)
		}
		if len(info.columns) == 0 {
			d.warn("the view %s refers to something that is not there any more and is left out", info.name)
			continue
		}
		v := view{viewInfo: info, create: hideDefiner(rows[0][1]), collation: rows[0][3]}
		d.addText("view", info.name, rows[0][1], "", v.collation)
		early = append(early, v)
	}
	needs := make([]string, len(functions))
	for i, f := range functions {
		needs[i] = quoteName(f) + "("
	}
	early, late = part(early, needs)
	return early, late, nil
}

// part moves the views that hold one of the given texts to late, and those
// that read such a view.
func part(views []view, needs []string) (early, late []view) {
	holds := func(v view) bool {
		return slices.ContainsFunc(needs, func(n string) bool { return strings.Contains(v.create, n) })
	}
	for _, v := range views {
		if holds(v) {
			late = append(late, v)
		} else {
			early = append(early, v)
		}
	}
	if len(late) == 0 {
		return early, nil
	}
	needs = nil
	for _, v := range late {
		needs = append(needs, quoteName(v.name))
	}
	early, more := part(early, needs)
	return early, append(late, more...)
}

// placeholder stands for a view until what it reads is there: views may read
// each other in any order.
func (v view) placeholder() string {
	columns := make([]string, len(v.columns))
	for i, c := range v.columns {
		columns[i] = "1 AS " + quoteName(c)
	}
	return fmt.Sprintf("DROP TABLE IF EXISTS %[1]s;\nDROP VIEW IF EXISTS %[1]s;\nCREATE VIEW %[1]s AS SELECT %[2]s;\n",
		quoteName(v.name), strings.Join(columns, ", "))
}

func (v view) final() string {
	return fmt.Sprintf("DROP VIEW IF EXISTS %s;\nSET collation_connection = %s;\n%s;\n", quoteName(v.name),
		v.collation, v.create)
}

func (d *dumper) writeViews(views []view) {
	for _, v := range views {
		d.out.string("\n" + v.placeholder())
	}
	for _, v := range views {
		d.out.string("\n" + v.final())
	}
	if len(views) > 0 {
		d.out.string("SET NAMES utf8mb4;\n")
	}
}
