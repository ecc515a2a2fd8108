package mail

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/smtptest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// held is a together whose first transaction lasts until release is called, so
// that everybody who comes meanwhile waits for the next one.
func held(t *testing.T, engine jobstest.Engine) (l ledger, release func()) {
	t.Helper()
	_, db := site(t, engine)
	l = newLedger(db.DB, time.Now)
	inside, gate := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- l.write.do(context.Background(), "holding", func(context.Context, *batch) error {
			close(inside)
			<-gate
			return nil
		})
	}()
	<-inside
	return l, func() {
		close(gate)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Mails that end at the same time are written in one transaction, each as if
// it were alone: one whose recipient another run holds fails, the others do not.
func TestMailsAreWrittenTogetherAndFailAlone(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			l, release := held(t, engine)
			to := []address.Address{{Mailbox: "a@example.net"}}
			const mails = 20
			errs := make([]error, mails)
			var group sync.WaitGroup
			for i := range mails {
				job := i
				if i == 7 { // a second run of job 6
					job = 6
				}
				group.Go(func() {
					n := note{uuid: fmt.Sprint("job-", job), token: fmt.Sprint("token-", i)}
					errs[i] = l.claim(t.Context(), n, to, nil)
				})
			}
			for l.write.Waiting() < mails {
				runtime.Gosched()
			}
			release()
			group.Wait()
			for i, err := range errs {
				if i != 6 && i != 7 && err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			}
			if (errs[6] == nil) == (errs[7] == nil) {
				t.Errorf("two runs of one job claimed its recipient: %v, %v", errs[6], errs[7])
			}
			var rows int
			if err := l.db.Get(&rows, "SELECT COUNT(*) FROM cmsjobs_mail WHERE status = 'sending'"); err != nil ||
				rows != mails-1 {
				t.Errorf("%d rows, %v", rows, err)
			}
		})
	}
}

// A caller that gives up while it waits leaves nothing behind: a row that says
// "sending" would make the mail one of which nobody knows whether it was sent.
func TestWhoGivesUpWaitingHasClaimedNothing(t *testing.T) {
	l, release := held(t, jobstest.SQLite)
	ctx, cancel := context.WithCancelCause(t.Context())
	given := make(chan error, 1)
	go func() {
		given <- l.claim(ctx, note{uuid: "job", token: "t"}, []address.Address{{Mailbox: "a@example.net"}}, nil)
	}()
	for l.write.Waiting() == 0 {
		runtime.Gosched()
	}
	why := errors.New("the worker stops")
	cancel(why)
	if err := <-given; !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	release()
	if states, err := l.load(t.Context(), "job"); err != nil || len(states) != 0 {
		t.Errorf("%v, %v", states, err)
	}
}

// Two runs of a retry, which find the recipient deferred at the same time, send
// one mail: the claim counts the rows that it changed.
func TestTwoRunsOfARetrySendOneMail(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSink(t, nil)
			s.on(func(string) error {
				return &smtptest.Refusal{Code: 451, Enhanced: "4.3.0", Message: "later"}
			}, nil)
			h := handler(t, config(t, s, engine))
			payload := map[string]any{"to": "a@example.net", "subject": "s", "body": "b"}
			if _, err := run(t, h, "job", 1, payload); err == nil {
				t.Fatal("a deferred mail is done")
			}
			s.on(nil, nil)

			inside, gate, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- h.ledger.write.do(context.Background(), "holding", func(context.Context, *batch) error {
					close(inside)
					<-gate
					return nil
				})
			}()
			<-inside
			var group sync.WaitGroup
			errs := make([]error, 2)
			for i := range errs {
				group.Go(func() { _, errs[i] = run(t, h, "job", 2, payload) })
			}
			for h.ledger.write.Waiting() < len(errs) { // both have read "deferred" and are about to claim
				runtime.Gosched()
			}
			close(gate)
			group.Wait()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n := len(s.all()); n != 1 {
				t.Errorf("%d mails, want 1 (%v)", n, errs)
			}
		})
	}
}

// An answer is written over what the same run claimed and over what waits for
// another attempt, never over what another run holds or has settled; many mails'
// answers in one statement.
func TestAnAnswerIsWrittenOnlyOverWhatIsFree(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			l, release := held(t, engine)
			release()
			own, other := note{uuid: "job", token: "OWN", attempt: 2}, note{uuid: "job", token: "OTHER", attempt: 1}
			at := func(name string) address.Address { return address.Address{Mailbox: name + "@example.net"} }
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(l.claim(t.Context(), own, []address.Address{at("claimed")}, nil))
			must(l.claim(t.Context(), other, []address.Address{at("held"), at("deferred"), at("accepted")}, nil))
			must(l.settle(t.Context(), other, append(all([]address.Address{at("deferred")}, Deferred, 451, "later"),
				all([]address.Address{at("accepted")}, Accepted, 250, "took it")...)))
			names := []string{"claimed", "held", "deferred", "accepted", "missing"}
			var answers []outcome
			for _, name := range names {
				answers = append(answers, outcome{to: at(name), status: Refused, code: 550, answer: "no " + name})
			}
			must(l.settle(t.Context(), own, answers))
			want := map[string]string{"claimed": "refused OWN 550 no claimed", "held": "sending OTHER 0 ",
				"deferred": "refused OWN 550 no deferred",
				"accepted": "accepted OTHER 250 took it", "missing": "refused OWN 550 no missing"}
			for _, name := range names {
				var row struct {
					Status, Token, Answer string
					Code                  int
				}
				must(l.db.Get(&row, l.db.Rebind("SELECT status, token, answer, code FROM cmsjobs_mail WHERE "+
					"recipient = ?"), at(name).Key()))
				if got := fmt.Sprintf("%s %s %d %s", row.Status, row.Token, row.Code, row.Answer); got != want[name] {
					t.Errorf("%s: %q, wanted %q", name, got, want[name])
				}
			}
		})
	}
}
