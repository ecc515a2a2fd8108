package conditions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// servicePing is the row of the ping that is for the whole service.
const servicePing = "(service)"

// pingedWithin is how old a success may be that is still news: an old one
// would tell the monitor that all is well.
const pingedWithin = 2 * time.Hour

// call pings what is due.
func (p *Pinger) call(ctx context.Context, e *Evaluator, states []State) error {
	now, err := e.c.Queue.Now(ctx)
	if err != nil {
		return nil //nolint:nilerr // the database is away: silence is the message
	}
	var faults []error
	if p.URL != "" && len(states) > 0 && !e.deserted && !slices.ContainsFunc(states, func(s State) bool {
		return s.Active && s.Severity == Failing
	}) {
		every := p.Every
		if every <= 0 {
			every = time.Minute
		}
		faults = append(faults, p.once(ctx, e, servicePing, p.URL, now, now.Add(-every)))
	}
	if len(p.Entries) == 0 {
		return errors.Join(faults...)
	}
	var names []string
	for name := range p.Entries {
		names = append(names, name)
	}
	slices.Sort(names)
	at, err := p.Successes(ctx, names)
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	for _, name := range names {
		if success := at[name]; now.Sub(success) < pingedWithin {
			faults = append(faults, p.once(ctx, e, name, p.Entries[name], success, success.Add(-time.Millisecond)))
		}
	}
	return errors.Join(faults...)
}

// once calls an address if no process did since then. A call that fails is
// repeated in the next interval, by any process.
func (p *Pinger) once(ctx context.Context, e *Evaluator, name, address string, at, then time.Time) error {
	var last int64
	rows, err := e.c.DB.QueryContext(ctx, e.c.DB.Rebind("SELECT at FROM cmsjobs_pings WHERE name = ?"), name)
	if err != nil {
		return fmt.Errorf("reading when %s was pinged: %w", name, err)
	}
	there := rows.Next()
	if there {
		err = rows.Scan(&last)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("reading when %s was pinged: %w", name, err)
	}
	if there && last > then.UnixMilli() {
		return nil
	}
	won, err := p.take(ctx, e, name, last, at.UnixMilli(), there)
	if err != nil || !won {
		return err
	}
	if err := p.get(ctx, address); err != nil {
		_, back := e.change(context.WithoutCancel(ctx), "UPDATE cmsjobs_pings SET at = ? WHERE name = ? AND at = ?",
			last, name, at.UnixMilli())
		return errors.Join(fmt.Errorf("the ping for %s: %w", name, err), back)
	}
	return nil
}

// take is the compare-and-set by which one process pings.
func (p *Pinger) take(ctx context.Context, e *Evaluator, name string, last, at int64, there bool) (bool, error) {
	if !there {
		if _, err := e.change(ctx, database.Of(e.c.DB).InsertIgnore("cmsjobs_pings", "name, at", "(?, 0)"),
			name); err != nil {
			return false, fmt.Errorf("noting the ping of %s: %w", name, err)
		}
	}
	won, err := e.change(ctx, "UPDATE cmsjobs_pings SET at = ? WHERE name = ? AND at = ?", at, name, last)
	if err != nil {
		return false, fmt.Errorf("noting the ping of %s: %w", name, err)
	}
	return won, nil
}

// get calls an address. Its errors name the host only: the path is the secret.
func (p *Pinger) get(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("its address is not one of HTTP")
	}
	answer, err := p.Client.Do(r)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // the status is the answer
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("%s answered %d", r.URL.Host, answer.StatusCode)
	}
	return nil
}
