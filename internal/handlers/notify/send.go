package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// send runs a notification.send job: for one channel, or to choose channels.
func (h *Handler) send(ctx context.Context, job jobs.Job, p Payload) error {
	if p.Channel != "" && p.Passed {
		return h.sendTo(ctx, p)
	}
	if p.Digest {
		return h.digest(ctx, job, p)
	}
	if p.Immediate {
		return h.forward(ctx, p)
	}
	g, err := h.gate(ctx, job.UUID, p)
	if err != nil {
		return err
	}
	if !g.open {
		// Each one that is held sees to it that the digest comes; the key keeps
		// all but the first out.
		jobs.FollowUp(ctx, Send.New(Payload{Topic: cmp.Or(p.Topic, p.Title), Channel: p.Channel, Digest: true,
			Level: p.Level, URL: p.URL}).In(g.wait).Unique(g.key))
		return jobs.SetResult(ctx, Result{Held: true})
	}
	return h.forward(ctx, p)
}

// forward tells the channel that the message names, or makes a job for each one.
func (h *Handler) forward(ctx context.Context, p Payload) error {
	if p.Channel != "" {
		return h.sendTo(ctx, p)
	}
	return h.fanOut(ctx, p)
}

// fanOut makes a job for each channel that takes the message's level.
func (h *Handler) fanOut(ctx context.Context, p Payload) error {
	var r Result
	for _, c := range h.c.Channels {
		if levelOf(p.Level) < levelOf(c.MinLevel) || p.SentDirectly && c.chat() {
			continue
		}
		one := p
		one.Topic = p.topic()
		one.Channel, one.Passed, one.Digest, one.Immediate, one.SentDirectly = c.Name, true, false, false, false
		jobs.FollowUp(ctx, Send.New(one))
		r.Channels = append(r.Channels, c.Name)
	}
	if len(r.Channels) == 0 {
		r.Note = "no channel takes messages of this level (notify.channels)"
	}
	return jobs.SetResult(ctx, r)
}

// digest tells what was held back of a topic since its last message.
func (h *Handler) digest(ctx context.Context, job jobs.Job, p Payload) error {
	held, err := h.takeHeld(ctx, job.UUID, p.counted())
	if err != nil {
		return err
	}
	if held.Count == 0 {
		return jobs.SetResult(ctx, Result{Note: "nothing was held back"})
	}
	p.Title, p.Message, p.Count = held.Title, held.Message, held.Count
	return h.forward(ctx, p)
}

type gate struct {
	open bool
	wait time.Duration // until the digest
	key  string        // of the interval's one digest
}

type row struct {
	ToldAt    int64  `db:"notified_at"`
	ToldBy    string `db:"notified_by"`
	ToldCount int    `db:"notified_count"`
	Held      int
	Title     string `db:"held_title"`
	Message   string `db:"held_message"`
}

// gate lets one message of a topic through in an interval. A job that was let
// through and died is let through again: it has left no jobs behind.
func (h *Handler) gate(ctx context.Context, uuid string, p Payload) (g gate, err error) {
	now := h.c.Now()
	err = h.locked(ctx, p.counted(), func(r *row) {
		g = gate{}
		told := time.UnixMilli(r.ToldAt)
		switch {
		case r.ToldBy == uuid:
			g.open = true
		case r.Held == 0 && now.Sub(told) >= h.c.Interval:
			g.open = true
			*r = row{ToldAt: now.UnixMilli(), ToldBy: uuid, ToldCount: 1}
		default:
			g.wait = max(told.Add(h.c.Interval).Sub(now), time.Second)
			g.key = fmt.Sprintf("notify:%x:%d", sha256.Sum256([]byte(p.counted())), r.ToldAt)
			r.Held++
			r.Title, r.Message = cut(p.Title, 255), cut(p.Message, 1000)
		}
	})
	return g, err
}

type heldBack struct {
	Title, Message string
	Count          int
}

// takeHeld takes what was held back. A job that took it and died takes it again.
func (h *Handler) takeHeld(ctx context.Context, uuid, topic string) (held heldBack, err error) {
	now := h.c.Now()
	err = h.locked(ctx, topic, func(r *row) {
		if r.ToldBy != uuid {
			*r = row{ToldAt: now.UnixMilli(), ToldBy: uuid, ToldCount: r.Held, Title: r.Title, Message: r.Message}
		}
		held = heldBack{r.Title, r.Message, r.ToldCount}
	})
	return held, err
}

// locked changes a topic's row under its lock. A deadlock has change called again,
// with the row as it is then.
func (h *Handler) locked(ctx context.Context, topic string, change func(*row)) error {
	if err := h.makeRow(ctx, topic); err != nil {
		return fmt.Errorf("noting a notification: %w", err)
	}
	return database.InTx(ctx, h.c.DB, "noting a notification", func(tx *sqlx.Tx) error {
		var r row
		if err := tx.GetContext(ctx, &r, tx.Rebind("SELECT notified_at, notified_by, notified_count, held, "+
			"held_title, held_message FROM cmsjobs_notifications WHERE topic = ?"+database.Of(tx).ForUpdate),
			topic); err != nil {
			return err
		}
		change(&r)
		_, err := tx.ExecContext(ctx, tx.Rebind("UPDATE cmsjobs_notifications SET notified_at = ?, notified_by = ?, "+
			"notified_count = ?, held = ?, held_title = ?, held_message = ? WHERE topic = ?"),
			r.ToldAt, r.ToldBy, r.ToldCount, r.Held, r.Title, r.Message, topic)
		return err
	})
}

func (h *Handler) makeRow(ctx context.Context, topic string) error {
	var there int
	err := h.c.DB.GetContext(ctx, &there, h.c.DB.Rebind("SELECT 1 FROM cmsjobs_notifications WHERE topic = ?"), topic)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	insert := database.Of(h.c.DB).InsertIgnore("cmsjobs_notifications", "topic, notified_at, notified_by, "+
		"notified_count, held, held_title, held_message", "(?, 0, '', 0, 0, '', '')")
	_, err = h.c.DB.ExecContext(ctx, h.c.DB.Rebind(insert), topic)
	return err
}

// Register adds notification.send and its alias.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Send, h.send)
	jobs.Results[Result](r, Send)
	jobs.Restrict(r, Send, jobs.Restriction[Payload]{Reserved: reserved})
	r.Alias("send_notification", Send.Name)
}

// Direct tells the chats at once, without a job: for the time in which the
// database takes none. Mail and the CMS's list need the database.
func (h *Handler) Direct(ctx context.Context, p Payload) error {
	var faults []error
	for _, c := range h.c.Channels {
		if !c.chat() || levelOf(p.Level) < levelOf(c.MinLevel) {
			continue
		}
		if err := h.by(ctx, c, p); err != nil {
			faults = append(faults, fmt.Errorf("telling %s: %w", c, err))
		}
	}
	return errors.Join(faults...)
}
