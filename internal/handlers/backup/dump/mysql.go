package dump

import (
	"cmp"
	"context"
	"fmt"
)

// MySQL dumps the database that the DSN names (go-sql-driver's form).
func MySQL(ctx context.Context, dsn string, o Options, sink Sink) (Summary, error) {
	s, err := open(ctx, dsn)
	if err != nil {
		return Summary{}, fmt.Errorf("opening the database for the dump: %w", err)
	}
	defer s.close()
	d := &dumper{session: s, options: o}
	d.out = newWriter(ctx, o, sink)
	err = d.run(ctx)
	// A sink that fails makes the rest fail too: its own error says why.
	if err = cmp.Or(d.out.close(), err); err != nil {
		return Summary{}, fmt.Errorf("dumping the database %s: %w", s.database, err)
	}
	d.summary.Rows, d.summary.Bytes = d.out.rows, d.out.bytes
	d.summary.Schema = hashOf(d.summary.Objects)
	return d.summary, nil
}

func (d *dumper) run(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	catalog, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	if d.structures, err = d.structure(ctx); err != nil {
		return err
	}
	catalog = catalog.only(d.options)
	d.describe(catalog)
	d.out.start(Main, "")
	d.header()
	for _, sequence := range catalog.sequences {
		if err := d.sequence(ctx, sequence); err != nil {
			return err
		}
	}
	for _, t := range catalog.tables {
		if err := d.table(ctx, t); err != nil {
			return err
		}
	}
	return d.rest(ctx, catalog)
}

// rest writes what can only follow the tables.
func (d *dumper) rest(ctx context.Context, c catalog) error {
	programs, err := d.programs(ctx, c)
	if err != nil {
		return err
	}
	early, late, err := d.views(ctx, c, programs.functions())
	if err != nil {
		return err
	}
	d.out.start(Main, "")
	d.writeViews(early)
	d.footer()
	if len(programs)+len(late) > 0 {
		d.out.start(Extra, "")
		d.writePrograms(programs, late)
	}
	return d.out.err()
}

func (d *dumper) describe(c catalog) {
	d.summary.Sequences = c.sequences
	for _, v := range c.views {
		d.summary.Views = append(d.summary.Views, v.name)
	}
}
