package dump

import (
	"bytes"
	"errors"
	"strings"
)

// PostgresRows lets the structure that a dump of pg_dump begins with through to another
// loader, and of all rows those of the tables that wanted accepts. Keys, indexes and
// triggers are left out: they follow the rows, and some would miss the rows of others.
type PostgresRows struct {
	PieceLoader
	wanted func(table string) bool

	line    []byte // its beginning, until it is judged
	judged  bool   // the rest of the line goes where its beginning went
	through bool
	rows    bool // after the structure
	copying bool // within rows
}

// NewPostgresRows makes one.
func NewPostgresRows(to PieceLoader, wanted func(table string) bool) *PostgresRows {
	return &PostgresRows{PieceLoader: to, wanted: wanted}
}

// maxCopyLine bounds a statement that begins rows: 1,600 columns of 63 bytes, in quotes.
const maxCopyLine = 1 << 18

// Load restores what it lets through of one piece, which may end within a line.
func (p *PostgresRows) Load(part Part, table string, piece []byte) error {
	var out []byte
	for len(piece) > 0 {
		n := bytes.IndexByte(piece, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(piece)
		}
		if !p.judged {
			p.line = append(p.line, piece[:n]...)
			if !whole && len(p.line) < maxCopyLine {
				break
			}
			p.through = p.judge(string(bytes.TrimRight(p.line, "\r\n")))
			if p.through {
				out = append(out, p.line...)
			}
			p.line = p.line[:0]
		} else if p.through {
			out = append(out, piece[:n]...)
		}
		p.judged = !whole
		piece = piece[n:]
	}
	if len(out) == 0 {
		return nil
	}
	return p.PieceLoader.Load(part, table, out)
}

// judge says whether a line goes through.
func (p *PostgresRows) judge(line string) bool {
	if p.copying {
		p.copying = line != `\.`
		return p.through
	}
	if table, is := copiedTable(line); is {
		p.rows, p.copying = true, true
		return p.wanted(table)
	}
	return !p.rows || strings.HasPrefix(line, `\unrestrict `) // without it psql runs no command of ours
}

// copiedTable reads the table's name, without its schema, from a statement that begins rows.
func copiedTable(line string) (string, bool) {
	rest, is := strings.CutPrefix(line, "COPY ")
	if !is || !strings.HasSuffix(rest, " FROM stdin;") {
		return "", false
	}
	var name string
	for {
		quoted := strings.HasPrefix(rest, `"`)
		switch {
		case quoted:
			name, rest = cutQuoted(rest[1:])
		default:
			end := strings.IndexAny(rest, ". ")
			name, rest = rest[:end], rest[end:]
		}
		if !strings.HasPrefix(rest, ".") {
			return name, true
		}
		rest = rest[1:]
	}
}

// cutQuoted reads a name up to its closing quote; two quotes are one of the name.
func cutQuoted(s string) (name, rest string) {
	for {
		part, after, _ := strings.Cut(s, `"`)
		name += part
		if !strings.HasPrefix(after, `"`) {
			return name, after
		}
		name, s = name+`"`, after[1:]
	}
}

// Close commits. It reports a dump that ends too early.
func (p *PostgresRows) Close() error {
	if p.copying || len(p.line) > 0 {
		return errors.Join(ErrTorn, p.Abort())
	}
	return p.PieceLoader.Close()
}
