package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// Packets sends MySQL several statements in one packet. The server runs them in
// order and stops at the first that fails. It has a separate connection, as
// such a connection must never get a statement that somebody else wrote: on all
// others a text that smuggles in a second statement is refused.
type Packets struct {
	DB      *sql.DB // of one connection
	Sending sync.Mutex
	limit   int  // of connections of the database beside; under sending, as the rest
	probed  bool // the server was asked
	refused bool // it takes no packets
}

// ErrUnsent says that a packet was not sent: the statements may go one by one.
var ErrUnsent = errors.New("the statements were not sent in one packet")

// ErrNoPackets says that it is so for good.
var ErrNoPackets = errors.New("this database gets no packets of several statements")

// ErrShortPacket says that a packet's guard found fewer rows than it wants.
var ErrShortPacket = errors.New("the guard of a packet stopped it")

func newPackets(c *mysql.Config) (*Packets, error) {
	c = c.Clone()
	c.MultiStatements = true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	p := &Packets{DB: sql.OpenDB(readCommitted{BoundConnector(connector)})}
	p.DB.SetMaxOpenConns(1)
	p.DB.SetConnMaxLifetime(lifetime)
	return p, nil
}

// Guard is an assignment that fails unless the statement before it in the packet
// found n rows; else the variable gets the value. MySQL has no IF outside of
// stored programs, but exp(9999) fails in every mode.
func Guard(variable, value string, n int) string {
	return fmt.Sprintf("SET %s = %s + EXP(IF(ROW_COUNT() = %d, 0, 9999)) - 1", variable, value, n)
}

// guardFailed says that err is a guard's.
func guardFailed(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == 1690 && strings.Contains(strings.ToLower(my.Message), "row_count")
}

// Sent is what a statement of a packet did: how many rows it found, and what it gave
// LAST_INSERT_ID.
type Sent struct{ Rows, ID int64 }

// Send runs statements, one transaction from START TRANSACTION to COMMIT, and
// says what each did. After an error nothing of it remains, where
// Classify does not call the error unclear. One packet goes at a time: while
// it does, errUnsent is the answer to others, as waiting would keep their
// transactions from being written to the disk together.
func (p *Packets) Send(ctx context.Context, db *sqlx.DB, statements []string, args []any) ([]Sent, error) {
	if !p.Sending.TryLock() {
		return nil, ErrUnsent
	}
	defer p.Sending.Unlock()
	if err := p.probe(ctx, db); err != nil {
		return nil, errors.Join(ErrUnsent, err) // nothing of the caller's was sent
	}
	return p.run(ctx, statements, args)
}

// probe asks once whether the server, and any proxy before it, takes packets and
// stops at a guard. The packets' connection is one of those that db may have.
func (p *Packets) probe(ctx context.Context, db *sqlx.DB) error {
	if p.probed {
		if p.refused {
			return ErrNoPackets
		}
		return nil
	}
	if p.limit == 0 {
		p.limit = db.Stats().MaxOpenConnections
		if p.limit == 1 || p.limit == 2 { // none can be spared
			p.probed, p.refused = true, true
			return ErrNoPackets
		}
		db.SetMaxOpenConns(max(p.limit-1, 0))
	}
	_, held := p.run(ctx, []string{"START TRANSACTION", Guard("@held", "1", 0), "COMMIT"}, nil)
	if class := Classify(held); class != Other && class != NotDatabase {
		return held // another time
	}
	_, short := p.run(ctx, []string{"START TRANSACTION", Guard("@held", "1", 1), "COMMIT"}, nil)
	if class := Classify(short); class != Other && class != NotDatabase {
		return short
	}
	if p.probed = true; held == nil && errors.Is(short, ErrShortPacket) {
		return nil
	}
	p.refused = true
	db.SetMaxOpenConns(p.limit)
	p.DB.SetMaxIdleConns(-1) // the connection is not needed any more
	return errors.Join(ErrNoPackets, held, short)
}

func (p *Packets) run(ctx context.Context, statements []string, args []any) (found []Sent, err error) {
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return nil, errors.Join(ErrUnsent, err)
	}
	defer conn.Close()
	err = conn.Raw(func(raw any) error {
		c, ok := raw.(mysqlConn)
		if !ok {
			return fmt.Errorf("%w: the driver's connection is a %T", ErrUnsent, raw)
		}
		found, err = c.execAll(ctx, statements, args)
		if err == nil {
			return nil
		}
		// The failed statement left its transaction open.
		if _, undone := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK", nil); undone != nil {
			return errors.Join(err, driver.ErrBadConn)
		}
		return err
	})
	return found, err
}

// execAll runs statements in one packet.
func (c mysqlConn) execAll(ctx context.Context, statements []string, args []any) ([]Sent, error) {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
		if err := c.CheckNamedValue(&named[i]); err != nil {
			return nil, err
		}
	}
	r, err := c.ExecContext(ctx, strings.Join(statements, "; "), named)
	switch {
	case guardFailed(err):
		return nil, ErrShortPacket
	case errors.Is(err, driver.ErrSkip), errors.Is(err, driver.ErrBadConn) && !errors.Is(err, ErrReadOnly):
		return nil, errors.Join(ErrUnsent, err) // the driver's words for: not sent
	case err != nil:
		return nil, err
	}
	all, ok := r.(mysql.Result)
	if !ok || len(all.AllRowsAffected()) != len(statements) || len(all.AllLastInsertIds()) != len(statements) {
		return nil, mysql.ErrInvalidConn // the last answers did not come
	}
	found, ids := make([]Sent, len(statements)), all.AllLastInsertIds()
	for i, rows := range all.AllRowsAffected() {
		found[i] = Sent{rows, ids[i]}
	}
	return found, nil
}

// packetConnector is a connector of MySQL whose database has packets beside.
type packetConnector struct {
	readCommitted
	packets *Packets
}

// Driver makes the packets known to PacketsOf.
func (c packetConnector) Driver() driver.Driver {
	return packetDriver{c.readCommitted.Driver(), c.packets}
}

// Close closes the packets' connection with the database.
func (c packetConnector) Close() error { return c.packets.DB.Close() }

type packetDriver struct {
	driver.Driver
	packets *Packets
}

// PacketsOf are the packets of a database that Connect opened; nil where there
// are none.
func PacketsOf(db *sqlx.DB) *Packets {
	d, _ := db.Driver().(packetDriver)
	return d.packets
}
