package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Notify listens to what a trigger of the jobs table notifies (PostgreSQL). The
// trigger is made by Trigger, when a person asks for it.
type Notify struct {
	DSN   string
	Table string // as it is written in SQL, quoted where it must be
}

// triggerName is the name of the trigger and of its function; the channel is this
// with the number of the table.
const triggerName = "cmsjobs_wake"

// Name implements Source.
func (*Notify) Name() string { return "NOTIFY" }

// Run implements Source.
func (n *Notify) Run(ctx context.Context, report Told) error {
	c, channel, err := n.listen(ctx)
	if err != nil {
		return err
	}
	defer hangUp(ctx, c.PgConn())
	// What another connection of ours notifies arrives, or none does: a pooler lies
	// between, or the server is gone. A connection's own notifications arrive behind a
	// pooler too.
	other, err := connectPostgres(ctx, n.DSN, nil)
	if err != nil {
		return err
	}
	defer hangUp(ctx, other.PgConn())
	for asked := false; ; {
		if !asked {
			if _, err := other.Exec(ctx, "SELECT pg_notify($1, 'alive')", channel); err != nil {
				return fmt.Errorf("notifying ourselves: %w", err)
			}
			asked = true
		}
		waiting, cancel := context.WithTimeout(ctx, aliveEvery)
		notification, err := c.WaitForNotification(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && notification.Payload == "alive":
			report(Alive)
			if err := rest(ctx, c, aliveEvery, report); err != nil {
				return err
			}
			asked = false
		case err == nil:
			report(Inserted)
		case pgconn.Timeout(err) && asked:
			return &UnavailableError{"the connection delivers no notifications; a pooler in transaction mode " +
				"delivers none", "name the server itself in feed.dsn"}
		default:
			return fmt.Errorf("waiting for notifications: %w", err)
		}
	}
}

// rest hears notifications for a while.
func rest(ctx context.Context, c *pgx.Conn, d time.Duration, report Told) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		notification, err := c.WaitForNotification(ctx)
		switch {
		case err == nil && notification.Payload != "alive":
			report(Inserted)
		case err == nil:
		case pgconn.Timeout(err) || errors.Is(err, context.Canceled):
			return nil
		default:
			return fmt.Errorf("waiting for notifications: %w", err)
		}
	}
}

// listen connects and listens to the trigger's channel.
func (n *Notify) listen(ctx context.Context) (*pgx.Conn, string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	c, err := connectPostgres(ctx, n.DSN, nil)
	if err != nil {
		return nil, "", err
	}
	channel, err := n.channel(ctx, c)
	if err == nil {
		_, err = c.Exec(ctx, "LISTEN "+channel)
	}
	if err != nil {
		return nil, "", errors.Join(err, c.Close(ctx))
	}
	return c, channel, nil
}

// channel is what the table's trigger notifies.
func (n *Notify) channel(ctx context.Context, c *pgx.Conn) (string, error) {
	var number uint32
	err := c.QueryRow(ctx, "SELECT tgrelid FROM pg_trigger WHERE tgname = '"+triggerName+"' AND tgenabled <> 'D' AND "+
		"tgrelid = to_regclass($1)", n.Table).Scan(&number)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", &UnavailableError{"the table " + n.Table + " has no trigger that notifies", "cmsjobs migrate feed"}
	}
	if err != nil {
		return "", fmt.Errorf("looking for the trigger of %s: %w", n.Table, err)
	}
	return fmt.Sprintf("%s_%d", triggerName, number), nil
}

// Trigger is the statements that make the trigger of a table: one notification a
// statement, however many rows it inserts.
func Trigger(table string) []string {
	return []string{
		"CREATE OR REPLACE FUNCTION " + triggerName +
			"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('" + triggerName +
			"_' || TG_RELID::text, ''); RETURN NULL; END $$",
		"DROP TRIGGER IF EXISTS " + triggerName + " ON " + table,
		"CREATE TRIGGER " + triggerName + " AFTER INSERT ON " + table + " FOR EACH STATEMENT EXECUTE PROCEDURE " +
			triggerName + "()",
	}
}

// DropTrigger is the statements that remove it.
func DropTrigger(table string) []string {
	return []string{"DROP TRIGGER IF EXISTS " + triggerName + " ON " + table,
		"DROP FUNCTION IF EXISTS " + triggerName + "()"}
}

// Script is statements for a person to read.
func Script(statements []string) string { return strings.Join(statements, ";\n") + ";" }
