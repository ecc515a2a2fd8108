package binlog

import (
	"context"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
)

// The kinds of events that go-mysql has no name for.
const (
	randEvent      = 13
	userVarEvent   = 14
	xaPrepareEvent = 38
)

// preparedXA is the flag of MariaDB's transactions of several resources.
const preparedXA = 0x40

// event takes in one event of the log.
func (p *replayer) event(e event) error {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	p.tell(e)
	p.at = fmt.Sprintf("%s:%d", e.file, e.offset+int64(e.Header.EventSize))
	switch v := e.Event.(type) {
	case *replication.FormatDescriptionEvent:
		return p.describe(e.RawData)
	case *replication.QueryEvent:
		return p.query(e, v)
	case *replication.XIDEvent:
		return p.commit(int64(e.Header.Timestamp))
	case *replication.TableMapEvent:
		return p.rows.table(e, v, p)
	case *replication.RowsEvent:
		return p.rows.add(e, v, p)
	}
	return p.other(e)
}

// other follows events that say how the next ones are to be applied.
func (p *replayer) other(e event) error {
	switch v := e.Event.(type) {
	case *replication.GTIDEvent:
		return p.begin(int64(v.ImmediateCommitTimestamp / 1e6))
	case *replication.GtidTaggedLogEvent:
		return p.begin(int64(v.ImmediateCommitTimestamp / 1e6))
	case *replication.MariadbGTIDEvent:
		err := p.begin(0)
		p.group.explicit = !v.IsStandalone() // it has no BEGIN
		p.group.xa = v.Flags&preparedXA != 0
		return err
	case *replication.IntVarEvent:
		name := "last_insert_id"
		if v.Type == replication.INSERT_ID {
			name = "insert_id"
		}
		p.before = append(p.before, fmt.Sprintf("SET @@session.%s = %d", name, v.Value))
	case *replication.BeginLoadQueryEvent, *replication.ExecuteLoadQueryEvent:
		return p.unknown("a LOAD DATA that is logged as a statement")
	}
	switch e.Header.EventType {
	case randEvent, userVarEvent:
		return p.value(e)
	case xaPrepareEvent:
		return p.end(p.group.xa && p.group.open)
	}
	return nil
}

func (p *replayer) tell(e event) {
	moment := time.Unix(int64(e.Header.Timestamp), 0)
	if p.t.Progress != nil && e.Header.Timestamp > 0 && moment.After(p.told) {
		p.told = moment
		p.t.Progress(moment)
	}
}

// unknown refuses what cannot be applied, where it is of the database: what it is of
// is not known before the statement, so the next one fails.
func (p *replayer) unknown(what string) error {
	p.before = append(p.before, "")
	p.note("%s was not applied", what)
	return nil
}

const mostNotes = 50

func (p *replayer) note(format string, args ...any) {
	if len(p.result.Notes) < mostNotes {
		p.result.Notes = append(p.result.Notes, fmt.Sprintf(format, args...))
	}
}
