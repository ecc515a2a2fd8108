package dump

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// program is a stored body: a function, procedure, package, trigger or event.
type program struct {
	kind, name               string
	create                   string
	sqlMode, collation, zone string
}

type programs []program

func (p programs) functions() (names []string) {
	for _, one := range p {
		if one.kind == "FUNCTION" {
			names = append(names, one.name)
		}
	}
	return names
}

// bodies says where the answer to SHOW CREATE has the text and its settings.
var bodies = map[string]struct{ mode, create, collation, zone int }{
	"FUNCTION":     {1, 2, 4, -1},
	"PROCEDURE":    {1, 2, 4, -1},
	"PACKAGE":      {1, 2, 4, -1},
	"PACKAGE BODY": {1, 2, 4, -1},
	"TRIGGER":      {1, 2, 4, -1},
	"EVENT":        {1, 3, 5, 2},
}

// programs reads routines, then triggers, then events.
func (d *dumper) programs(ctx context.Context, c catalog) (all programs, err error) {
	schema := quoteText(d.database)
	routines := "SELECT ROUTINE_TYPE, ROUTINE_NAME, '' FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = " +
		schema + " ORDER BY ROUTINE_TYPE, ROUTINE_NAME"
	triggers := "SELECT 'TRIGGER', TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE " +
		"TRIGGER_SCHEMA = " + schema +
		" ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER"
	events := "SELECT 'EVENT', EVENT_NAME, '' FROM information_schema.EVENTS WHERE EVENT_SCHEMA = " + schema +
		" ORDER BY EVENT_NAME"
	queries := []string{routines, triggers, events}
	if c.partial {
		queries = []string{triggers}
	}
	for _, query := range queries {
		rows, err := d.texts(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("listing routines, triggers and events: %w", err)
		}
		for _, r := range rows {
			if r[2] != "" && !slices.ContainsFunc(c.tables, func(t tableInfo) bool { return t.name == r[2] }) {
				continue // the trigger's table is not in the dump
			}
			p, err := d.program(ctx, r[0], r[1])
			if err != nil {
				return nil, err
			}
			if p.create != "" {
				all = append(all, p)
				d.note(p)
			}
		}
	}
	return all, nil
}

func (d *dumper) note(p program) {
	d.addText(p.kind, p.name, p.create, p.sqlMode, p.collation)
	switch p.kind {
	case "TRIGGER":
		d.summary.Triggers = append(d.summary.Triggers, p.name)
	case "EVENT":
		d.summary.Events = append(d.summary.Events, p.name)
	default:
		d.summary.Routines = append(d.summary.Routines, p.name)
	}
}

func (d *dumper) program(ctx context.Context, kind, name string) (program, error) {
	at, known := bodies[kind]
	if !known {
		d.warn("%s %s is of a kind that is not dumped", kind, name)
		return program{}, nil
	}
	rows, err := d.texts(ctx, "SHOW CREATE "+kind+" "+quoteName(name))
	if err != nil || len(rows) != 1 || len(rows[0]) <= at.collation {
		return program{}, fmt.Errorf("reading how the %s %s is made: %w", strings.ToLower(kind), name, err)
	}
	r := rows[0]
	if r[at.create] == "" {
		d.warn("the database user may not read the body of the %s %s, which is left out: grant SHOW_ROUTINE or "+
			"SELECT on mysql.proc", strings.ToLower(kind), name)
		return program{}, nil
	}
	p := program{kind: kind, name: name, create: hideDefiner(r[at.create]), sqlMode: r[at.mode],
		collation: r[at.collation]}
	if at.zone >= 0 {
		p.zone = r[at.zone]
	}
	return p, nil
}

// writePrograms writes the second file: placeholders of its views first, as
// routines may read them, then routines, the views, triggers and events.
func (d *dumper) writePrograms(all programs, late []view) {
	d.out.textf("-- cmsjobs dump of %s: routines, triggers, events. Restore after the tables.\n\n%s",
		commentName(d.database), settings)
	for _, v := range late {
		d.out.string("\n" + v.placeholder())
	}
	isRoutine := func(p program) bool { return p.kind != "TRIGGER" && p.kind != "EVENT" }
	for _, p := range all {
		if isRoutine(p) {
			d.out.string(p.sql())
		}
	}
	for _, v := range late {
		d.out.string("\n" + v.final())
	}
	for _, p := range all {
		if !isRoutine(p) {
			d.out.string(p.sql())
		}
	}
	d.out.string("SET NAMES utf8mb4;\n" + restoreSettings + EndMark + "\n")
}

func (p program) sql() string {
	var b strings.Builder
	delimiter := delimiterFor(p.create)
	fmt.Fprintf(&b, "\n-- %s %s\nDROP %s IF EXISTS %s;\n", p.kind, commentName(p.name), p.kind, quoteName(p.name))
	fmt.Fprintf(&b, "SET collation_connection = %s;\nSET sql_mode = %s;\n", p.collation,
		quoteText(withoutAccounts(p.sqlMode)))
	if p.zone != "" {
		fmt.Fprintf(&b, "SET time_zone = %s;\n", quoteText(p.zone))
	}
	fmt.Fprintf(&b, "DELIMITER %[1]s\n%[2]s %[1]s\nDELIMITER ;\n", delimiter, p.create)
	if p.zone != "" {
		b.WriteString("SET time_zone = '+00:00';\n")
	}
	b.WriteString("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';\n")
	return b.String()
}

// delimiterFor chooses a delimiter that the body does not hold.
func delimiterFor(body string) string {
	for _, d := range []string{";;", "$$", "//", "%%"} {
		if !strings.Contains(body, d) {
			return d
		}
	}
	d := "@@"
	for strings.Contains(body, d) {
		d += "@"
	}
	return d
}
