package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// swallowPackets cuts a worker off for longer than its lease while its
// connections stay open: others run its jobs, after it has stopped them.
func (l *lab) swallowPackets(context.Context) error {
	l.did("packets swallowed past the lease", lease*5/2+20*time.Second+aftermath)
	return l.toxics.poison("database", "timeout", map[string]any{"timeout": 0}, lease*5/2)
}

// readOnly refuses every write of the program for longer than a lease, as after
// a failover to a replica. The CMS writes on.
func (l *lab) readOnly(ctx context.Context) error {
	l.delayed("server read-only", lease*3/2+10*time.Second+aftermath)
	if err := l.persist(ctx, "SET GLOBAL read_only = 1"); err != nil {
		return err
	}
	time.Sleep(lease * 3 / 2)
	return l.persist(ctx, "SET GLOBAL read_only = 0")
}

// persist says a statement until the server takes it.
func (l *lab) persist(ctx context.Context, statement string) (err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		call, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, err = l.db.ExecContext(call, statement)
		if cancel(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", statement, err)
}

// termWhileTheServerHangs stops a worker whose database does not answer: it
// ends within its grace period and a second.
func (l *lab) termWhileTheServerHangs(ctx context.Context) error {
	w := l.victim()
	// what it could not release waits for its lease
	l.did("TERM while the server hangs", grace+10*time.Second+aftermath)
	if err := l.server.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	told := time.Now()
	w.signal(syscall.SIGTERM)
	err := w.wait(time.Minute)
	took := time.Since(told)
	l.mu.Lock()
	l.stops = append(l.stops, took)
	l.mu.Unlock()
	if code := exitCode(err); code != 0 && code != noDatabase || took > grace+time.Second+slack {
		l.note("%s ended with %v, %v after TERM while the server hung", w.name, err, took.Round(time.Millisecond))
	}
	return errors.Join(l.server.Signal(syscall.SIGCONT), w.start(ctx))
}

// grace is what a worker gives its jobs at its end; slack is what a machine that
// others use may add.
const (
	grace = 5 * time.Second
	slack = 2 * time.Second
)

// tableAway takes a table of the CMS away, which only some handlers need. Their
// statements are refused and tried again; all other work goes on.
func (l *lab) tableAway(ctx context.Context) error {
	l.harmed(fault{name: "table of a handler away", kind: "media.processImage", delays: true}, 10*time.Second+aftermath)
	var pictures []order
	for range 5 {
		if o, made := l.load.order("media.processImage", picture); made {
			pictures = append(pictures, o)
		}
	}
	if err := l.persist(ctx, "RENAME TABLE media_files TO media_files_away"); err != nil {
		return err
	}
	err := l.load.ask(ctx, pictures)
	time.Sleep(4 * time.Second)
	return errors.Join(err, l.persist(ctx, "RENAME TABLE media_files_away TO media_files"))
}

// hostsOut makes some receivers of webhooks answer with errors until their
// circuit breakers open.
func (l *lab) hostsOut(ctx context.Context) error {
	l.harmed(fault{name: "receivers of webhooks out", kind: "webhook.deliver", delays: true}, 20*time.Second+breakers)
	l.hooks.down.Store(true)
	time.Sleep(20 * time.Second)
	l.hooks.down.Store(false)
	call, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var open int
	if err := l.db.GetContext(call, &open,
		"SELECT COUNT(*) FROM cmsjobs_breakers WHERE state <> 'closed'"); err != nil {
		say("counting circuit breakers: %v", err)
	}
	l.mu.Lock()
	l.opened += open
	l.mu.Unlock()
	return nil
}

// jump is a while in which the database's clock was wrong by so much.
type jump struct {
	by       time.Duration
	from, to time.Time
}

func (l *lab) clockForward(ctx context.Context) error {
	return l.moveClock(ctx, "forward", time.Minute)
}
func (l *lab) clockBack(ctx context.Context) error { return l.moveClock(ctx, "back", -time.Minute) }

// moveClock moves the database's clock by ten leases, and back after two.
func (l *lab) moveClock(_ context.Context, name string, by time.Duration) error {
	l.delayed("database's clock "+name+" and back", by.Abs()+2*lease+aftermath)
	j := jump{by: by, from: time.Now()}
	if err := l.dbClock.Move(by); err != nil {
		return err
	}
	time.Sleep(2 * lease)
	err := l.dbClock.Move(0)
	j.to = time.Now()
	l.mu.Lock()
	l.jumps = append(l.jumps, j)
	l.mu.Unlock()
	return err
}

// trueTimes puts the moments of runs that ended while the database's clock was
// wrong right. They come in the order of their ends, more or less: a moment that
// can be read in two ways is the one nearer to its neighbour's.
func trueTimes(runs []run, jumps []jump) {
	const spill = 2 * time.Second // for what was under way at a jump
	var before time.Time
	for i, r := range runs {
		best := r.ended
		for _, j := range jumps {
			moment := r.ended.Add(-j.by)
			if moment.Before(j.from.Add(-spill)) || moment.After(j.to.Add(spill)) {
				continue
			}
			if moment.Sub(before).Abs() < best.Sub(before).Abs() {
				best = moment
			}
		}
		runs[i].started, runs[i].ended = r.started.Add(best.Sub(r.ended)), best
		before = best
	}
}

// foreign looks for the rows that a plugin left in the queue.
func (l *lab) foreign(ctx context.Context) (string, []string, error) {
	var rows, touched int
	err := l.db.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE(SUM(attempts > 0 OR reserved_at IS NOT NULL), 0) "+
		"FROM jobs WHERE payload = ?", foreignPayload).Scan(&rows, &touched)
	var faults []string
	if rows != foreignRows || touched != 0 {
		faults = append(faults, fmt.Sprintf("%d of %d rows of a plugin are there, %d of them touched", rows,
			foreignRows, touched))
	}
	return fmt.Sprintf("%d rows of a plugin in front of all, none touched", rows), faults, err
}

// foreignRows stand in front of everything else in the queue.
const (
	foreignRows    = 30_000
	foreignPayload = `{"type":"other.plugin","data":{"what":"a row that only a plugin understands"}}`
)
