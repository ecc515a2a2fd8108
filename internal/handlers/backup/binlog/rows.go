package binlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-sql-driver/mysql"
)

// batch collects events of rows for one BINLOG statement: the maps of the statement's
// tables, and rows of them. The server applies them as a replica does, with each type
// as it is, and without triggers.
type batch struct {
	maps   map[uint64]mapped
	events []string
	size   int
	last   *event // the last rows, which are not among the events yet
}

// mapped is a table that rows are of.
type mapped struct {
	raw  []byte // with the new database's name; nil where its rows are left out
	name string
	ours bool
}

// mostRows is how large a BINLOG statement grows, but for its last event.
const mostRows = 1 << 20

func (b *batch) reset() { *b = batch{} }

// table reads which table rows are of.
func (b *batch) table(e event, m *replication.TableMapEvent, p *replayer) error {
	if b.maps == nil {
		b.maps = map[uint64]mapped{}
	}
	if err := b.flush(p); err != nil { // maps come before rows
		return err
	}
	name := string(m.Table)
	of := mapped{name: name, ours: strings.EqualFold(string(m.Schema), p.t.Schema)}
	if of.ours && !p.leaves(name) {
		head, body := e.parts()
		var err error
		if of.raw, err = renamed(head, body, len(m.Schema), p.names.to, sumsOf(p.format)); err != nil {
			return err
		}
	}
	b.maps[m.TableID] = of
	return nil
}

// leaves says whether a table's rows are left out: those that the dump has none of, and
// those of tables that the dump does not hold.
func (p *replayer) leaves(table string) bool {
	return p.left[table] || p.conn != nil && !p.base[table] && !p.there[table]
}

// mapPrefix is what a map has before the name of its database: table id, flags, length.
const mapPrefix = 6 + 2 + 1

// renamed is a map of a table in another database.
func renamed(head, body []byte, old int, schema string, sums bool) ([]byte, error) {
	if len(body) < mapPrefix+old || int(body[mapPrefix-1]) != old || len(schema) > 250 {
		return nil, errors.New("the map of a table cannot be read")
	}
	out := slices.Clone(body[:mapPrefix-1])
	out = append(append(out, byte(len(schema))), schema...)
	return resummed(head, append(out, body[mapPrefix+old:]...), sums), nil
}

// sumsOf says whether a description wants events with checksums.
func sumsOf(description []byte) bool {
	n := len(description)
	return n > checksumSize && description[n-checksumSize-1] == replication.BINLOG_CHECKSUM_ALG_CRC32
}

// add takes rows, and applies the batch at the end of their statement.
func (b *batch) add(e event, rows *replication.RowsEvent, p *replayer) error {
	ends := rows.Flags&replication.RowsEventStmtEndFlag != 0
	of := b.maps[rows.TableID]
	switch {
	case !of.ours:
	case of.raw == nil:
		p.result.Skipped[of.name]++
	default:
		if err := p.open(); err != nil {
			return err
		}
		if b.last != nil {
			b.push(*b.last, p, false)
		}
		if len(b.events) == 0 { // the server opens all tables at the first rows
			for _, id := range slices.Sorted(maps.Keys(b.maps)) {
				if raw := b.maps[id].raw; raw != nil {
					b.append(raw)
				}
			}
		}
		b.last = &e
		if b.size+len(e.RawData) > mostRows {
			if err := b.flush(p); err != nil {
				return err
			}
		}
	}
	if ends {
		err := b.flush(p)
		b.reset()
		return err
	}
	return nil
}

func (b *batch) append(raw []byte) {
	text := base64.StdEncoding.EncodeToString(raw)
	b.events = append(b.events, text)
	b.size += len(text)
}

// push puts rows among the events. The last ones of a BINLOG statement end it: nothing
// stays open between two.
func (b *batch) push(e event, p *replayer, ends bool) {
	head, body := e.parts()
	body = slices.Clone(body)
	body[flagsOfRows] &^= byte(replication.RowsEventStmtEndFlag)
	if ends {
		body[flagsOfRows] |= byte(replication.RowsEventStmtEndFlag)
	}
	if body[flagsOfRows]&cascadesLogged != 0 {
		body[flagsOfRows] |= noForeignKeys
	}
	b.append(resummed(head, body, sumsOf(p.format)))
	b.last = nil
}

// flagsOfRows is where the flags of rows are: behind the number of the table.
const flagsOfRows = 6

// MySQL from 9.6 on logs the rows that a foreign key's cascade changes, and says so. They
// must not change a second time: a REPLACE there changes no rows of other tables, and its
// replay as DELETE and INSERT would. Where the storage engine cascades, it must.
const (
	cascadesLogged = 1 << 4
	noForeignKeys  = 1 << 1
)

// flush applies what was collected. Rows of the same statement may follow.
func (b *batch) flush(p *replayer) error {
	if b.last == nil {
		return nil
	}
	b.push(*b.last, p, true)
	return b.send(p)
}

const packetTooLarge = 1153

func (b *batch) send(p *replayer) error {
	statement := "BINLOG '" + strings.Join(b.events, "\n") + "'"
	b.events, b.size = nil, 0
	err := p.exec(statement)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == packetTooLarge {
		return fmt.Errorf("one change has %d MiB, more than the server's max_allowed_packet: raise it: %w",
			len(statement)>>20, err)
	}
	return err
}
