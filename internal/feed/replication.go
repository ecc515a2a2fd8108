package feed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Replication reads the changes of a PostgreSQL database as a subscriber of logical
// replication does, of the tables that publications of ours name (Publications). It
// needs no trigger, and sees the CMS's content too.
//
// Its slot is temporary: the server drops it with the connection, so that a service
// that is gone keeps no log files on the server's disk. It always begins at the log's
// end and keeps no position.
type Replication struct {
	DSN   string
	Table string // as it is written in SQL, quoted where it must be
	// Content are the tables of the CMS's content, as the database names them.
	Content []string

	sees atomic.Bool // all of the content that is there is published
}

const (
	// slotTime is how long the server may take to begin: it waits until the
	// transactions that are open have ended.
	slotTime = time.Minute
	// mostSilent is how many questions in a row the server may leave unanswered.
	mostSilent = 3
	// senderTimeout is how long the server waits for a reader that was stopped, before it
	// ends it and drops its slot.
	senderTimeout = "30s"
	// replicationMessage bounds a message, which holds a row.
	replicationMessage = 64 << 20
)

// Name implements Source.
func (*Replication) Name() string { return "logical replication" }

// SeesContent implements ContentSource.
func (s *Replication) SeesContent() bool { return s.sees.Load() }

// Run implements Source.
func (s *Replication) Run(ctx context.Context, report Told) error {
	published, err := s.examine(ctx)
	if err != nil {
		return err
	}
	c, err := s.subscribe(ctx, published)
	if err != nil {
		return err
	}
	defer hangUp(ctx, c)
	s.sees.Store(published.sees)
	defer s.sees.Store(false)
	r := subscriber{Replication: s, c: c, published: published, relations: map[uint32]relation{}, report: report}
	return r.run(ctx)
}

// published is what publications of ours hold.
type published struct {
	names  []string          // of publications
	jobs   string            // schema.table of the jobs table
	tables map[string]string // of content by schema.table
	sees   bool              // each table of content that is there is among them
}

// examine finds the publications, and says what keeps the server from replicating them.
func (s *Replication) examine(ctx context.Context) (*published, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	c, err := connectPostgres(ctx, s.DSN, nil)
	if err != nil {
		return nil, err
	}
	defer hangUp(ctx, c.PgConn())
	p, err := s.published(ctx, c)
	if err != nil {
		return nil, err
	}
	var level string
	var standby bool
	if err := c.QueryRow(ctx, "SELECT current_setting('wal_level'), pg_is_in_recovery()").Scan(&level,
		&standby); err != nil {
		return nil, fmt.Errorf("asking the server for its settings: %w", err)
	}
	switch {
	case standby:
		return nil, &UnavailableError{"the server is a standby", "name the primary in feed.dsn"}
	case level != "logical":
		return nil, &UnavailableError{"the server's wal_level is " + level + ", not logical",
			"ALTER SYSTEM SET wal_level = 'logical', as a superuser, and restart the server"}
	}
	return p, nil
}

// published finds the publications of the jobs table and of the content.
func (s *Replication) published(ctx context.Context, c *pgx.Conn) (*published, error) {
	rows, err := c.Query(ctx, `SELECT w.name, n.nspname || '.' || c.relname, COALESCE(p.pubname::text, ''),
		COALESCE(p.pubinsert, false), COALESCE(p.pubupdate AND p.pubdelete, false)
		FROM unnest($1::text[]) AS w (name) JOIN pg_class c ON c.oid = to_regclass(w.name)
		JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_publication_tables t ON t.schemaname = n.nspname AND t.tablename = c.relname
			AND starts_with(t.pubname::text, $2)
		LEFT JOIN pg_publication p ON p.pubname = t.pubname`, s.names(), publicationPrefix)
	if err != nil {
		return nil, fmt.Errorf("looking for publications: %w", err)
	}
	p := &published{tables: map[string]string{}, sees: true}
	there := false
	var name, table, publication string
	var inserts, changes bool
	content := map[string]bool{}
	plain := map[string]string{}
	for _, table := range s.Content {
		plain[pgx.Identifier{table}.Sanitize()] = table
	}
	_, err = pgx.ForEachRow(rows, []any{&name, &table, &publication, &inserts, &changes}, func() error {
		if publication != "" && !slices.Contains(p.names, publication) {
			p.names = append(p.names, publication)
		}
		if name == s.Table {
			p.jobs, there = table, there || inserts
			return nil
		}
		p.tables[table] = plain[name]
		content[table] = content[table] || changes
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for publications: %w", err)
	}
	for _, is := range content {
		p.sees = p.sees && is
	}
	p.sees = p.sees && len(content) > 0
	if !there {
		return nil, &UnavailableError{"the table " + s.Table + " is in no publication of ours",
			"cmsjobs migrate feed --replication"}
	}
	return p, nil
}

// names are all tables as to_regclass wants them.
func (s *Replication) names() []string {
	names := []string{s.Table}
	for _, table := range s.Content {
		if name := (pgx.Identifier{table}).Sanitize(); !slices.Contains(names, name) && table != s.Table {
			names = append(names, name)
		}
	}
	return names
}

// subscribe connects, makes a slot and begins to read it.
func (s *Replication) subscribe(ctx context.Context, p *published) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, slotTime)
	defer cancel()
	conn, err := connectPostgres(ctx, s.DSN, map[string]string{"replication": "database"})
	if err != nil {
		return nil, s.explain(err)
	}
	c := conn.PgConn()
	c.Frontend().SetMaxBodyLen(replicationMessage)
	// PostgreSQL before 12 does not let us.
	_, _ = c.Exec(ctx, "SET wal_sender_timeout = '"+senderTimeout+"'").ReadAll()
	slot := publicationPrefix + randomName()
	_, err = pglogrepl.CreateReplicationSlot(ctx, c, slot, "pgoutput", pglogrepl.CreateReplicationSlotOptions{
		Temporary: true, SnapshotAction: "NOEXPORT_SNAPSHOT", Mode: pglogrepl.LogicalReplication})
	if err == nil {
		quoted := make([]string, len(p.names))
		for i, name := range p.names {
			quoted[i] = pgx.Identifier{name}.Sanitize()
		}
		names := strings.ReplaceAll(strings.Join(quoted, ","), "'", "''")
		err = pglogrepl.StartReplication(ctx, c, slot, 0, pglogrepl.StartReplicationOptions{
			PluginArgs: []string{"proto_version '1'", "publication_names '" + names + "'"}})
	}
	if err == nil {
		return c, nil
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	hangUp(ctx, c)
	if late {
		return nil, errors.New("the server has begun no replication yet: it waits for transactions that are open " +
			"(pg_stat_activity, pg_prepared_xacts)")
	}
	return nil, s.explain(err)
}

func randomName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// s.explain says what to do about an error.
func (s *Replication) explain(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return fmt.Errorf("reading the changes of the database: %w", err)
	}
	switch e.Code {
	case "42501": // insufficient_privilege
		return &UnavailableError{"the account may not replicate (" + e.Message + ")",
			"ALTER ROLE " + s.account() + " REPLICATION, as a superuser (on Amazon RDS: GRANT rds_replication); or " +
				"name another account in feed.dsn"}
	case "28000": // invalid_authorization_specification
		return &UnavailableError{"the server takes no replication from here (" + e.Message + ")",
			"add a line for the account to pg_hba.conf, or name another account in feed.dsn"}
	case "53400", "53300": // configuration_limit_exceeded, too_many_connections
		return &UnavailableError{"the server has no place for another subscriber (" + e.Message + ")",
			"raise max_replication_slots and max_wal_senders and restart the server"}
	case "08P01": // protocol_violation: a pooler does not know replication
		return &UnavailableError{"the connection takes no replication (" + e.Message + "); a pooler takes none",
			"name the server itself in feed.dsn"}
	case "55000", "55006": // the slot was invalidated, or is gone
		return fmt.Errorf("the slot is lost: %w", err)
	}
	return fmt.Errorf("reading the changes of the database: %w", err)
}

// account is the name of the account, as SQL writes it.
func (s *Replication) account() string {
	config, err := postgresConfig(s.DSN)
	if err != nil {
		return "…"
	}
	return pgx.Identifier{config.User}.Sanitize()
}

// relation is a table of which the server has told.
type relation struct {
	table string // of content, as we name it; "" for the jobs table
	key   int    // the column id; -1: there is none
	known bool
}

// subscriber reads what the server sends.
type subscriber struct {
	*Replication
	c         *pgconn.PgConn
	published *published
	relations map[uint32]relation
	report    Told
	at        pglogrepl.LSN // everything before it has been read
}

// run reads until ctx ends or the connection does. It asks the server for a sign of
// life every aliveEvery: without a question it gives one every quarter of a minute.
func (r *subscriber) run(ctx context.Context) error {
	for silent := 0; silent < mostSilent; silent++ {
		if err := pglogrepl.SendStandbyStatusUpdate(ctx, r.c, pglogrepl.StandbyStatusUpdate{WALWritePosition: r.at,
			ReplyRequested: true}); err != nil {
			return fmt.Errorf("telling the server what was read: %w", err)
		}
		heard, err := r.hear(ctx)
		if err != nil {
			return err
		}
		if heard {
			silent = -1
		}
	}
	return fmt.Errorf("the server has sent nothing for %v", mostSilent*aliveEvery)
}

// hear reads for aliveEvery, or until the server wants to know what was read, and says
// whether it sent anything.
func (r *subscriber) hear(ctx context.Context) (heard bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, aliveEvery)
	defer cancel()
	for {
		message, err := r.c.ReceiveMessage(waiting)
		switch {
		case ctx.Err() != nil:
			return heard, ctx.Err()
		case pgconn.Timeout(err):
			return heard, nil
		case err != nil:
			return heard, r.explain(err)
		}
		heard = true
		if refusal, ok := message.(*pgproto3.ErrorResponse); ok {
			return heard, r.explain(pgconn.ErrorResponseToPgError(refusal))
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok || len(data.Data) == 0 {
			continue
		}
		if urgent, err := r.take(data.Data); err != nil || urgent {
			return heard, err
		}
	}
}

// take reads a message; urgent says that the server wants to know what was read.
func (r *subscriber) take(data []byte) (urgent bool, err error) {
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		m, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return false, fmt.Errorf("reading the server's sign of life: %w", err)
		}
		r.at = max(r.at, m.ServerWALEnd)
		r.report(Alive)
		return m.ReplyRequested, nil
	case pglogrepl.XLogDataByteID:
		m, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return false, fmt.Errorf("reading a change: %w", err)
		}
		change, err := pglogrepl.Parse(m.WALData)
		if err != nil {
			return false, fmt.Errorf("reading a change: %w", err)
		}
		r.change(change)
		r.at = max(r.at, m.WALStart)
	}
	return false, nil
}

// change reports what a change means for the jobs table, or for the content.
func (r *subscriber) change(m pglogrepl.Message) {
	switch m := m.(type) {
	case *pglogrepl.RelationMessage:
		r.relations[m.RelationID] = r.relation(m)
	case *pglogrepl.InsertMessage:
		r.tell(m.RelationID, m.Tuple, Inserted)
	case *pglogrepl.UpdateMessage:
		r.tell(m.RelationID, m.NewTuple, Alive)
	case *pglogrepl.DeleteMessage:
		r.tell(m.RelationID, m.OldTuple, Alive)
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			r.tell(id, nil, Alive)
		}
	}
}

// relation finds out which of the tables one is.
func (r *subscriber) relation(m *pglogrepl.RelationMessage) relation {
	name := m.Namespace + "." + m.RelationName
	table, content := r.published.tables[name]
	return relation{table: table, known: content || name == r.published.jobs,
		key: slices.IndexFunc(m.Columns, func(c *pglogrepl.RelationMessageColumn) bool { return c.Name == "id" })}
}

// tell reports a change of a row: jobs is what it means for the jobs table.
func (r *subscriber) tell(id uint32, tuple *pglogrepl.TupleData, jobs Report) {
	of, ok := r.relations[id]
	switch {
	case !ok || !of.known:
		r.report(Alive)
	case of.table == "":
		r.report(jobs)
	case tuple == nil || of.key < 0 || of.key >= len(tuple.Columns) || len(tuple.Columns[of.key].Data) == 0:
		r.report(Edited)
	default:
		r.report(Edited, Row{Table: of.table, ID: string(tuple.Columns[of.key].Data)})
	}
}
