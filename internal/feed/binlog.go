package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Binlog reads the binary log of a MariaDB or MySQL server, as a replica does: it
// sees every program's inserts, on whatever host. It reads which table rows are for, of
// the content's their ids, and a job that comes alone. It always begins at the log's end and keeps no
// position: a look for new rows after each start finds what came before.
type Binlog struct {
	// DSN names the server and an account that may read its log.
	DSN string
	// Schema and Table are the database and the jobs table in it.
	Schema, Table string
	// Content are the tables of the CMS's content in it; may be empty.
	Content []string
}

// The time in which the server must say something, and the least number of a
// replica: real ones have small numbers, two of one number end each other.
const (
	binlogSilence = 3 * aliveEvery
	binlogReplica = 1 << 20
	// binlogEvents bounds the events that wait in memory.
	binlogEvents = 16
)

// Name implements Source.
func (*Binlog) Name() string { return "binary log" }

// Run implements Source.
func (b *Binlog) Run(ctx context.Context, report Told) error {
	driver, err := database.DriverDSN(b.DSN)
	if err != nil {
		return err
	}
	c, err := mysql.ParseDSN(driver)
	if err != nil { // the driver's error may repeat the password
		return errors.New("the DSN of the change feed cannot be read")
	}
	server, err := b.examine(ctx)
	if err != nil {
		return err
	}
	syncer := replication.NewBinlogSyncer(b.config(ctx, c, server, report))
	defer syncer.Close()
	stream, err := syncer.StartSync(server.end)
	if err == nil {
		_, err = stream.GetEvent(ctx) // events go to the handler: it returns when the stream ends
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return server.explain(err)
}

// config is that of the reader. It never connects again by itself: the next
// Run begins at the log's end, where no position can have been purged.
func (b *Binlog) config(ctx context.Context, c *mysql.Config, server *binlogServer,
	report Told) replication.BinlogSyncerConfig {
	config := replication.BinlogSyncerConfig{
		ServerID: binlogReplica + rand.Uint32N(1<<31), Flavor: server.flavor(), User: c.User, Password: c.Passwd,
		TLSConfig:       c.TLS,
		HeartbeatPeriod: aliveEvery, ReadTimeout: binlogSilence, DisableRetrySync: true,
		Logger: slog.New(slog.DiscardHandler), EventCacheCount: binlogEvents, DiscardGTIDSet: true,
		FillZeroLogPos:                 true, // MariaDB 11.4 leaves the positions of a transaction's events out
		TableMapOptionalMetaDecodeFunc: noMetadata,
		RowsEventDecodeFunc:            b.headers,
		SynchronousEventHandler:        &binlogHandler{b, report, server.columns},
		Dialer: func(dialing context.Context, network, address string) (net.Conn, error) {
			if ctx.Err() != nil { // closing needs no connection
				return nil, ctx.Err()
			}
			return (&net.Dialer{Timeout: binlogSilence}).DialContext(dialing, network, address)
		},
	}
	config.Host = c.Addr // a socket's path
	if host, port, err := net.SplitHostPort(c.Addr); err == nil && c.Net != "unix" {
		number, _ := strconv.ParseUint(port, 10, 16) // the driver has read it before
		config.Host, config.Port = host, uint16(number)
	}
	return config
}

// headers reads of an event which table its rows are for, and the rows only where the
// table is one of the content, or they are few and short: rows of jobs may be long and many.
func (b *Binlog) headers(e *replication.RowsEvent, data []byte) error {
	position, err := e.DecodeHeader(data)
	if err != nil || b.content(e) == "" && !(b.isJob(e) && len(data) <= knockBytes) {
		return err
	}
	if e.DecodeData(position, data) != nil { // which rows changed is good to know, not needed
		e.Rows = nil
	}
	return nil
}

// content is the table of the content that the event is for, "" for another.
func (b *Binlog) content(e *replication.RowsEvent) string {
	if e.Table == nil || !strings.EqualFold(string(e.Table.Schema), b.Schema) {
		return ""
	}
	i := slices.IndexFunc(b.Content, func(ours string) bool { return strings.EqualFold(string(e.Table.Table), ours) })
	if i < 0 {
		return ""
	}
	return b.Content[i]
}

// isJob says that the event inserts into the jobs table.
func (b *Binlog) isJob(e *replication.RowsEvent) bool {
	return e.Table != nil && strings.EqualFold(string(e.Table.Schema), b.Schema) &&
		strings.EqualFold(string(e.Table.Table), b.Table) && e.Type() == replication.EnumRowsEventTypeInsert
}

// rows names the rows of an event by their first column, which is the id in each table
// that Laravel's migrations make; a job by what it is.
func (h *binlogHandler) rows(e *replication.BinlogEvent) (rows []Row) {
	event, ok := e.Event.(*replication.RowsEvent)
	if !ok {
		return nil
	}
	if h.isJob(event) {
		if job, ok := jobIn(event, h.columns); ok {
			return []Row{{Job: job}}
		}
		return nil
	}
	table := h.content(event)
	for _, values := range event.Rows {
		if len(values) == 0 || len(rows) == mostRows {
			break
		}
		switch id := values[0].(type) {
		case int8, int16, int32, int64, string:
			rows = append(rows, Row{Table: table, ID: fmt.Sprint(id)})
		}
	}
	return rows
}

func noMetadata([]byte) error { return nil }

// binlogHandler reports what concerns the jobs table.
type binlogHandler struct {
	*Binlog
	report  Told
	columns map[string]int // of the jobs table: where they are; empty where that is not known
}

// SeesContent implements ContentSource.
func (b *Binlog) SeesContent() bool { return len(b.Content) > 0 }

// HandleEvent implements the reader's interface. That there is an event at all shows
// that the log is read.
func (h *binlogHandler) HandleEvent(e *replication.BinlogEvent) error {
	h.report(h.concerns(e), h.rows(e)...)
	if payload, ok := e.Event.(*replication.TransactionPayloadEvent); ok { // binlog_transaction_compression
		for _, inner := range payload.Events {
			h.report(h.concerns(inner), h.rows(inner)...)
		}
	}
	return nil
}

// concerns says what an event means for the jobs table, or for the content.
func (b *Binlog) concerns(e *replication.BinlogEvent) Report {
	switch event := e.Event.(type) {
	case *replication.RowsEvent:
		if event.Table == nil || !strings.EqualFold(string(event.Table.Schema), b.Schema) {
			return Alive
		}
		if b.isJob(event) {
			return Inserted
		}
		if b.content(event) != "" {
			return Edited
		}
	case *replication.QueryEvent: // binlog_format is STATEMENT or MIXED
		return b.concernsText(event.Query)
	}
	return Alive
}

// concernsText judges a statement: one that inserts and names the table may be an
// insert into it, one that writes and names a table of the content may change it.
func (b *Binlog) concernsText(statement []byte) Report {
	text := bytes.ToLower(statement[:min(len(statement), 1000)])
	has := func(word string) bool { return bytes.Contains(text, []byte(word)) }
	inserts := has("insert") || has("replace")
	switch names := func(table string) bool { return has(strings.ToLower(table)) }; {
	case inserts && names(b.Table):
		return Inserted
	case (inserts || has("update") || has("delete") || has("truncate")) && slices.ContainsFunc(b.Content, names):
		return Edited
	}
	return Alive
}
