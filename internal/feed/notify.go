package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Notify listens to what a trigger of the jobs table notifies (PostgreSQL). The
// trigger is made by AddTrigger, when a person asks for it.
type Notify struct {
	DSN   string
	Table string // as it is written in SQL, quoted where it must be
}

// trigger is the name of the trigger and of its function; the channel is this
// with the number of the table.
const trigger = "cmsjobs_wake"

// Name implements Source.
func (*Notify) Name() string { return "NOTIFY" }

// Run implements Source.
func (n *Notify) Run(ctx context.Context, report func(Report)) error {
	c, channel, err := n.listen(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(closing) // nothing is lost
	}()
	// Our notification comes back, or the connection delivers none:
	// a pooler lies between, or the server is gone.
	for asked := false; ; {
		if !asked {
			if _, err := c.Exec(ctx, "SELECT pg_notify($1, 'alive')", channel); err != nil {
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
func rest(ctx context.Context, c *pgx.Conn, d time.Duration, report func(Report)) error {
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
	dsn, err := database.DriverDSN(n.DSN)
	if err != nil {
		return nil, "", err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // it may repeat the password
		return nil, "", errors.New("the DSN of the change feed cannot be read")
	}
	database.BoundPostgres(config)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = "cmsjobs feed"
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, "", database.Explain("connecting for notifications", err)
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
	err := c.QueryRow(ctx, "SELECT tgrelid FROM pg_trigger WHERE tgname = '"+trigger+"' AND tgenabled <> 'D' AND "+
		"tgrelid = to_regclass($1)", n.Table).Scan(&number)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", &UnavailableError{"the table " + n.Table + " has no trigger that notifies", "cmsjobs migrate feed"}
	}
	if err != nil {
		return "", fmt.Errorf("looking for the trigger of %s: %w", n.Table, err)
	}
	return fmt.Sprintf("%s_%d", trigger, number), nil
}

// Trigger is the statements that make the trigger of a table: one notification a
// statement, however many rows it inserts.
func Trigger(table string) []string {
	return []string{
		"CREATE OR REPLACE FUNCTION " + trigger +
			"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('" + trigger +
			"_' || TG_RELID::text, ''); RETURN NULL; END $$",
		"DROP TRIGGER IF EXISTS " + trigger + " ON " + table,
		"CREATE TRIGGER " + trigger + " AFTER INSERT ON " + table + " FOR EACH STATEMENT EXECUTE PROCEDURE " +
			trigger + "()",
	}
}

// DropTrigger is the statements that remove it.
func DropTrigger(table string) []string {
	return []string{"DROP TRIGGER IF EXISTS " + trigger + " ON " + table, "DROP FUNCTION IF EXISTS " + trigger + "()"}
}

// Script is statements for a person to read.
func Script(statements []string) string { return strings.Join(statements, ";\n") + ";" }
