package mail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

// smtpDriver speaks SMTP. go-mail connects, greets, secures and authenticates;
// the transaction is spoken here, because the ledger needs to know about each
// recipient and about the moment before DATA.
type smtpDriver struct {
	pool      *pool
	transport Transport
}

func (d *smtpDriver) deliver(ctx context.Context, e envelope, msg message, handOver func([]address.Address) error) (
	[]outcome, error) {
	c, err := d.pool.take(ctx, d.transport)
	if err != nil {
		err = shorten(err)
		return all(e.recipients, Deferred, codeOf(err), err.Error()), err
	}
	outcomes, err := c.transaction(ctx, e, msg, handOver)
	if err != nil && c.used && errors.Is(err, errStale) {
		// The server had closed the idle connection. Nothing was handed over.
		c.close()
		if c, err = d.pool.dial(ctx, d.transport); err != nil {
			err = shorten(err)
			return all(e.recipients, Deferred, codeOf(err), err.Error()), err
		}
		outcomes, err = c.transaction(ctx, e, msg, handOver)
	}
	if err != nil {
		c.close()
		return outcomes, fmt.Errorf("talking to %s: %w", d.transport.Address(), shorten(err))
	}
	d.pool.give(c)
	return outcomes, nil
}

// errStale says that the connection was dead before anything was said.
var errStale = errors.New("the connection was closed")

// transaction is MAIL, RCPT, DATA, the text, and the answer. A non-nil error
// means that the connection is of no more use.
func (c *connection) transaction(ctx context.Context, e envelope, msg message,
	handOver func([]address.Address) error) ([]outcome, error) {
	stop := c.watch(ctx)
	defer stop()
	sendable, outcomes := c.sendable(e.recipients)
	if len(sendable) == 0 {
		return outcomes, nil
	}
	taken, refused, err := c.announce(e.from, sendable)
	if err != nil {
		return append(outcomes, all(sendable, Deferred, codeOf(err), err.Error())...), err
	}
	outcomes = append(outcomes, refused...)
	if len(taken) == 0 {
		return outcomes, c.reset()
	}
	if err := handOver(taken); err != nil {
		return append(outcomes, all(taken, Deferred, 0, err.Error())...), err
	}
	handed, err := c.data(taken, msg)
	return append(outcomes, handed...), err
}

// sendable leaves out those whose address this server cannot receive.
func (c *connection) sendable(recipients []address.Address) (can []address.Address, cannot []outcome) {
	for _, r := range recipients {
		if r.NeedsUTF8() && !c.extension("SMTPUTF8") {
			cannot = append(cannot, outcome{to: r, status: Refused, code: 553, answer: "the mail server takes no " +
				"addresses outside ASCII (SMTPUTF8)"})
			continue
		}
		can = append(can, r)
	}
	return can, cannot
}

// announce says MAIL and RCPT, in one packet where the server can pipeline
// (RFC 2920). A refused sender refuses all; the error is for the connection.
func (c *connection) announce(from string, recipients []address.Address) (taken []address.Address, refused []outcome,
	err error) {
	lines := []string{c.mailLine(from, recipients)}
	for _, r := range recipients {
		lines = append(lines, "RCPT TO:<"+r.Mailbox+">")
	}
	pipeline := c.extension("PIPELINING")
	if pipeline {
		if err := c.say(lines...); err != nil {
			return nil, nil, errors.Join(errStale, err)
		}
	}
	var sender error
	for i, line := range lines {
		if sender != nil && !pipeline {
			break
		}
		if !pipeline {
			if err := c.say(line); err != nil {
				return nil, nil, errors.Join(errStale, err)
			}
		}
		_, _, err := c.answer(25)
		err = shorten(err)
		switch {
		case lost(err):
			if i == 0 {
				err = errors.Join(errStale, err)
			}
			return nil, nil, err
		case i == 0:
			sender = err
		case err == nil:
			taken = append(taken, recipients[i-1])
		case sender == nil:
			refused = append(refused, rejected(recipients[i-1], err, true))
		}
	}
	if sender != nil {
		return nil, append(refused, senderRefused(from, sender, recipients)...), nil
	}
	return taken, refused, nil
}

// senderRefused is what a refused sender means for each recipient.
func senderRefused(from string, refusal error, recipients []address.Address) (refused []outcome) {
	for _, r := range recipients {
		refused = append(refused, rejected(r, fmt.Errorf("the sender %s was refused: %w", from, refusal), false))
	}
	return refused
}

func (c *connection) mailLine(from string, recipients []address.Address) string {
	line := "MAIL FROM:<" + from + ">"
	if c.extension("8BITMIME") {
		line += " BODY=8BITMIME"
	}
	utf8 := !address.IsASCII(from)
	for _, r := range recipients {
		utf8 = utf8 || r.NeedsUTF8()
	}
	if utf8 && c.extension("SMTPUTF8") {
		line += " SMTPUTF8"
	}
	return line
}

// data hands the message over. What fails before the final dot was not sent;
// what fails after it, without an answer, is unknown.
func (c *connection) data(taken []address.Address, msg message) ([]outcome, error) {
	if err := c.say("DATA"); err != nil {
		return all(taken, Deferred, 0, err.Error()), err
	}
	if _, _, err := c.answer(354); err != nil {
		if lost(err) {
			return all(taken, Deferred, 0, err.Error()), err
		}
		return allRejected(taken, err), c.reset()
	}
	text := c.client.Text.DotWriter()
	if _, err := msg.WriteTo(deadlined{text, c}); err != nil {
		// no dot: the server must forget it
		return all(taken, Deferred, 0, err.Error()), fmt.Errorf("writing the message: %w", err)
	}
	c.patience(c.answerTimeout)
	closed := text.Close()
	code, said, err := c.read(250)
	switch {
	case err == nil:
		return all(taken, Accepted, code, cut(said, maxAnswer)), nil
	case lost(err):
		err = fmt.Errorf("the connection died between the message and the server's answer: %w",
			errors.Join(closed, err))
		return all(taken, Unknown, 0, err.Error()), err
	}
	return allRejected(taken, err), nil
}

// deadlined gives each block of a message its own time (RFC 5321, 4.5.3.2.5).
type deadlined struct {
	io.Writer
	c *connection
}

func (d deadlined) Write(p []byte) (int, error) {
	d.c.patience(d.c.commandTimeout)
	return d.Writer.Write(p)
}

// shortError is an error whose text is cut to maxAnswer: a server's words go
// into the log, the job's error and the pages.
type shortError struct{ error }

func (e shortError) Error() string { return cut(e.error.Error(), maxAnswer) }

func (e shortError) Unwrap() error { return e.error }

// shorten clips the text of an error, which may repeat what a server said.
func shorten(err error) error {
	if err == nil || len(err.Error()) <= maxAnswer {
		return err
	}
	return shortError{err}
}

// lost says that there was no answer of SMTP, or that the server says goodbye
// (421): the connection is over.
func lost(err error) bool {
	if err == nil {
		return false
	}
	code := codeOf(err)
	return code == 0 || code == 421
}

func codeOf(err error) int {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

func allRejected(to []address.Address, err error) []outcome {
	list := make([]outcome, len(to))
	for i, r := range to {
		list[i] = rejected(r, err, false)
	}
	return list
}

// rejected reads an answer of the server: 4xx may be fixed by waiting, 5xx
// not (RFC 5321, 4.2.1).
func rejected(to address.Address, err error, recipient bool) outcome {
	o := outcome{to: to, status: Deferred, code: codeOf(err), answer: cut(err.Error(), maxAnswer)}
	if o.code >= 500 {
		o.status = Refused
		o.hard = recipient && noMailbox(o.code, o.answer)
	}
	return o
}

// noMailbox says that an answer to RCPT means "there is no such mailbox", and
// not "I do not like you" (policy, spam), which says nothing about the address.
// RFC 3463, 3.2: 5.1.x is about the address, 5.2.1 a closed mailbox.
func noMailbox(code int, answer string) bool {
	status := statusIn(answer)
	switch status {
	case "5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1":
		return true
	case "":
		if code != 550 && code != 551 && code != 553 {
			return false
		}
		answer = strings.ToLower(answer)
		for _, phrase := range []string{"user unknown", "unknown user", "no such user", "does not exist",
			"mailbox unavailable", "mailbox not found", "no mailbox", "recipient unknown", "unknown recipient",
			"invalid recipient", "no such recipient"} {
			if strings.Contains(answer, phrase) {
				return true
			}
		}
	}
	return false
}
