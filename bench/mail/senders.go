package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/wneessen/go-mail"

	"github.com/cmsjobs/cmsjobs/bench/servers"
)

const body = "<h1>Order 12</h1><p>Xin chào, thế giới. Your order is on its way.</p>"

//go:embed loop.py
var loop string

// lab is a database server, a mail server, and the program's configuration.
type lab struct {
	bench
	dir    string
	server *servers.Server
	db     *sqlx.DB
	dsn    string
	sink   *sink
	key    *rsa.PrivateKey
}

func newLab(ctx context.Context, dir string, b bench) (l *lab, err error) {
	l = &lab{bench: b, dir: dir}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.program, err = filepath.Abs(b.program); err != nil {
		return l, err
	}
	if l.sink, err = newSink(); err != nil {
		return l, err
	}
	if l.server, err = servers.MariaDB(); err != nil {
		return l, err
	}
	if l.db, l.dsn, _, err = l.server.CMS(ctx); err != nil {
		return l, err
	}
	if _, err = l.db.ExecContext(ctx, "CREATE TABLE settings (id INT PRIMARY KEY AUTO_INCREMENT, `key` VARCHAR(191), "+
		"value TEXT)"); err != nil {
		return l, err
	}
	if l.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return l, err
	}
	return l, l.configure()
}

func (l *lab) close() {
	if l.db != nil {
		l.db.Close()
	}
	if l.server != nil {
		l.server.Stop()
	}
	if l.sink != nil {
		l.sink.server.Close()
	}
}

func (l *lab) file(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) configure() error {
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(l.key)})
	if err := os.WriteFile(l.file("dkim.pem"), key, 0o600); err != nil {
		return err
	}
	text := fmt.Sprintf(`database: {dsn: %q}
mail:
  driver: smtp
  host: 127.0.0.1
  port: %d
  encryption: none
  from: noreply@example.com
  rate: {per_minute: 10000000}
  dkim: {domain: example.com, selector: s1, key_file: %q}
log: {level: warn}
`, l.dsn, l.sink.port, l.file("dkim.pem"))
	return os.WriteFile(l.file("cmsjobs.yaml"), []byte(text), 0o600)
}

// smtplib is a loop of Python's standard library over one connection.
func (l *lab) smtplib(ctx context.Context) (cost, error) {
	c := exec.CommandContext(ctx, "python3", "-c", loop, fmt.Sprint(l.sink.port), fmt.Sprint(l.mails))
	c.Stdin = strings.NewReader(body)
	out, err := c.Output()
	if err != nil {
		return cost{}, withStderr(err)
	}
	wall, err := time.ParseDuration(strings.TrimSpace(string(out)) + "s")
	return cost{wall: wall}, err
}

// goMail is a loop over one connection that signs as the worker does.
func (l *lab) goMail(ctx context.Context) (cost, error) {
	client, err := mail.NewClient("127.0.0.1", mail.WithPort(l.sink.port), mail.WithTLSPolicy(mail.NoTLS))
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := client.DialWithContext(ctx); err != nil {
		return cost{}, err
	}
	for i := range l.mails {
		m := mail.NewMsg()
		if err := errors.Join(m.From("noreply@example.com"), m.To(fmt.Sprintf("reader%d@example.net", i))); err != nil {
			return cost{}, err
		}
		m.Subject(fmt.Sprint("Order ", i))
		m.SetBodyString(mail.TypeTextPlain, "Order 12")
		m.AddAlternativeString(mail.TypeTextHTML, body)
		m.SetDKIM(mail.NewDKIMSigner("example.com", "s1", l.key))
		if err := client.Send(m); err != nil {
			return cost{}, err
		}
	}
	took := time.Since(began)
	return cost{wall: took}, client.Close()
}

// worker lets the program empty the queue. The time is that of the mails, from
// the first row's claim to the last one's end, as the history has it: a loop's
// time has no start of a program in it either.
func (l *lab) worker(slots int) func(context.Context) (cost, error) {
	return func(ctx context.Context) (cost, error) {
		if err := l.enqueue(ctx); err != nil {
			return cost{}, err
		}
		c := exec.CommandContext(ctx, l.program, "--config", l.file("cmsjobs.yaml"), "work", "--stop-when-empty", "-n",
			fmt.Sprint(slots))
		server := l.server.CPU()
		if out, err := c.CombinedOutput(); err != nil {
			return cost{}, fmt.Errorf("%w: %s", err, out)
		}
		wall, err := l.ran(ctx)
		return cost{wall, c.ProcessState.UserTime() + c.ProcessState.SystemTime(), l.server.CPU() - server}, err
	}
}

// enqueue adds the mails as the CMS does: plain rows of the table jobs.
func (l *lab) enqueue(ctx context.Context) error {
	tx, err := l.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	now := time.Now().Unix()
	for i := range l.mails {
		payload, err := json.Marshal(map[string]any{"type": "mail.send", "data": map[string]any{
			"to": fmt.Sprintf("reader%d@example.net", i), "subject": fmt.Sprint("Order ", i), "body": body,
			"text": "Order 12"}})
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) "+
			"VALUES ('default', ?, 0, ?, ?)", payload, now, now); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// ran is how long the runs of the last worker took together, and empties the history.
func (l *lab) ran(ctx context.Context) (time.Duration, error) {
	var all struct {
		Runs  int
		First int64
		Last  int64
	}
	err := l.db.GetContext(ctx, &all, "SELECT COUNT(*) runs, MIN(ended_at - duration_ms) first, MAX(ended_at) last "+
		"FROM cmsjobs_runs WHERE outcome = 'completed'")
	if err != nil {
		return 0, err
	}
	if all.Runs != l.mails {
		return 0, fmt.Errorf("%d of %d jobs were completed", all.Runs, l.mails)
	}
	_, err = l.db.ExecContext(ctx, "DELETE FROM cmsjobs_runs")
	return time.Duration(all.Last-all.First) * time.Millisecond, err
}

func withStderr(err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return err
}
