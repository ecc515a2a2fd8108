package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// BoundMySQL makes a configuration dial so that BoundConnector can bound its greetings.
func BoundMySQL(c *mysql.Config) {
	dial := c.DialFunc
	if dial == nil {
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	}
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return bound(ctx, conn, firstPacket)
	}
}

// firstPacket refuses a greeting that says that it is large: the driver would
// make space for it before it comes.
func firstPacket(header []byte) error {
	if size := int(header[0]) | int(header[1])<<8 | int(header[2])<<16; size > greetingBytes {
		return fmt.Errorf("%w: it begins with a packet of %d bytes; is that a MySQL server?", ErrGreeting, size)
	}
	return nil
}

// anyMessage is the driver's own limit of a message, in bytes.
const anyMessage = 0x3fffffff

// BoundPostgres makes a configuration dial so that BoundConnector and ConnectPostgres can
// bound its greetings.
func BoundPostgres(c *pgx.ConnConfig) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return bound(ctx, conn, nil)
	}
	c.MaxProtocolMessageBodyLen = greetingBytes
	after := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.Frontend().SetMaxBodyLen(anyMessage)
		if after != nil {
			return after(ctx, conn)
		}
		return nil
	}
}

// BoundConnector bounds the greetings of a connector whose configuration
// BoundMySQL or BoundPostgres has prepared.
func BoundConnector(c driver.Connector) driver.Connector { return boundConnector{c} }

type boundConnector struct{ driver.Connector }

func (c boundConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, g := beginGreeting(ctx)
	conn, err := c.Connector.Connect(ctx)
	return conn, g.end(err)
}

// ConnectPostgres is pgx.Connect with a bounded greeting.
func ConnectPostgres(ctx context.Context, dsn string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	BoundPostgres(c)
	bounded, g := beginGreeting(ctx)
	conn, err := pgx.ConnectConfig(bounded, c)
	if err = g.end(err); err != nil {
		return nil, Explain("connecting to the database", err)
	}
	return conn, nil
}
