package mail

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// BenchmarkBesideALoop sends 1,000 signed mails to one server on this host: by a
// plain loop over one connection, which remembers nothing, and as jobs of the
// queue, by a worker of 8 slots on MariaDB, with its ledger, a rate limit shared
// by all workers, the history and the settling of each job. It reports both
// rates and their ratio.
func BenchmarkBesideALoop(b *testing.B) {
	const mails = 1000
	signer := benchKey(b)
	var loop, queue time.Duration
	for b.Loop() {
		loop += loopTime(b, signer, mails)
		queue += queueTime(b, signer, mails)
	}
	total := float64(mails * b.N)
	b.ReportMetric(total/loop.Seconds(), "loop-mails/s")
	b.ReportMetric(total/queue.Seconds(), "queue-mails/s")
	b.ReportMetric(loop.Seconds()/queue.Seconds(), "ratio")
}

func loopTime(b *testing.B, signer *dkim.Key, mails int) time.Duration {
	s := newSink(b, nil)
	secure := config(b, s, jobstest.SQLite).TLS
	secure.ServerName = "127.0.0.1"
	client, err := mail.NewClient("127.0.0.1", mail.WithPort(s.port), mail.WithTLSConfig(secure),
		mail.WithTLSPolicy(mail.TLSMandatory),
		mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(password))
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := client.DialWithContext(context.Background()); err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for i := range mails {
		m := mail.NewMsg()
		if err := m.From("noreply@example.com"); err != nil {
			b.Fatal(err)
		}
		if err := m.To("a@example.net"); err != nil {
			b.Fatal(err)
		}
		m.Subject(fmt.Sprint("Order ", i))
		m.SetBodyString(mail.TypeTextPlain, "Order 12")
		m.AddAlternativeString(mail.TypeTextHTML, benchBody)
		m.SetDKIM(mail.NewDKIMSigner(signer.Domain, signer.Selector, signer.Private))
		if err := client.Send(m); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

func queueTime(b *testing.B, signer *dkim.Key, mails int) time.Duration {
	const slots = 8
	s := newSink(b, nil)
	c := config(b, s, jobstest.MySQL)
	c.IdleConnections, c.DKIM, c.Limits = slots, signer, Limits{All: Rate{PerMinute: 1_000_000}}
	c.DB.SetMaxIdleConns(slots + 4)
	c.DB.MustExec("CREATE TABLE settings (`key` VARCHAR(191), value TEXT)")
	h := handler(b, c)
	registry := jobs.NewRegistry()
	h.Register(registry)
	ctx := context.Background()
	if _, err := tables.CreateTables(ctx, c.DB, tables.Stock, ""); err != nil {
		b.Fatal(err)
	}
	store, err := queue.Open(ctx, c.DB, tables.Options{Registry: registry, DefaultQueue: "cmsjobs",
		RetryAfter: 5 * time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	list := make([]jobs.Spec, mails)
	for i := range list {
		list[i] = Send.New(SendPayload{To: Addresses{"a@example.net"}, Subject: fmt.Sprint("Order ", i),
			Body: benchBody, Text: "Order 12"})
	}
	if _, err := store.Enqueue(ctx, list...); err != nil {
		b.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Workers: store, Registry: registry, Now: time.Now,
		Info:   jobs.WorkerInfo{ID: "bench"},
		Queues: []string{"cmsjobs"}, Slots: slots, Lease: 5 * time.Minute, StopWhenEmpty: true})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if n := len(s.all()); n != mails {
		b.Fatalf("%d of %d mails arrived", n, mails)
	}
	return took
}
