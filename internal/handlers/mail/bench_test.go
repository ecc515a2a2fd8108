package mail

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

const benchBody = "<h1>Order 12</h1><p>Xin chào, thế giới. Your order is on its way.</p>"

// BenchmarkThroughput sends single mails, signed with RSA of 2048 bits, to one
// local server with STARTTLS and AUTH, on this host or 5 ms away: by a plain loop of go-mail over one
// connection, which remembers nothing, and by ours with its ledger, one job at
// a time and several at once.
func BenchmarkThroughput(b *testing.B) {
	for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("latency=%s", latency), func(b *testing.B) { throughput(b, latency) })
	}
}

func throughput(b *testing.B, latency time.Duration) {
	signer := benchKey(b)
	b.Run("go-mail-loop", func(b *testing.B) {
		s := newSlowSink(b, latency)
		secure := config(b, s, jobstest.SQLite).TLS
		secure.ServerName = "127.0.0.1"
		client, err := mail.NewClient("127.0.0.1", mail.WithPort(s.port), mail.WithTLSConfig(secure),
			mail.WithTLSPolicy(mail.TLSMandatory),
			mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(password))
		if err != nil {
			b.Fatal(err)
		}
		if err := client.DialWithContext(context.Background()); err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		b.ResetTimer()
		for i := range b.N {
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
		perSecond(b)
	})
	for _, engine := range []jobstest.Engine{jobstest.SQLite, jobstest.MariaDB, jobstest.MySQL} {
		for _, slots := range []int{1, 4, 10} {
			b.Run(fmt.Sprintf("cmsjobs-%s-%d", engine, slots), func(b *testing.B) {
				s := newSlowSink(b, latency)
				c := config(b, s, engine)
				c.IdleConnections = slots
				c.DKIM = signer
				c.DB.SetMaxIdleConns(slots + 1) // as the service's own connections
				c.DB.MustExec("CREATE TABLE settings (`key` VARCHAR(191), value TEXT)")
				h := handler(b, c)
				var n atomic.Int64
				var group sync.WaitGroup
				b.ResetTimer()
				for range slots {
					group.Go(func() {
						for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
							p := SendPayload{To: Addresses{"a@example.net"}, Subject: fmt.Sprint("Order ", i),
								Body: benchBody, Text: "Order 12"}
							if err := h.send(context.Background(), jobs.Job{UUID: fmt.Sprint("job-", i), Attempt: 1,
								Data: json.RawMessage("{}"), EnqueuedAt: time.Now()}, p); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				perSecond(b)
			})
		}
	}
}

func benchKey(b *testing.B) *dkim.Key {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "dkim.pem")
	if err := os.WriteFile(file,
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		0o600); err != nil {
		b.Fatal(err)
	}
	signer, err := dkim.Load("example.com", "s1", file)
	if err != nil {
		b.Fatal(err)
	}
	return signer
}

func perSecond(b *testing.B) {
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
}

// newSlowSink is a sink as far away as latency says: each packet of commands
// waits that long before the server reads it.
func newSlowSink(b *testing.B, latency time.Duration) *sink {
	s := newSink(b, nil)
	if latency == 0 {
		return s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	s.port = l.Addr().(*net.TCPAddr).Port
	go s.server.Serve(slowListener{l, latency})
	return s
}

type slowListener struct {
	net.Listener
	latency time.Duration
}

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return slowConn{c, l.latency}, err
}

type slowConn struct {
	net.Conn
	latency time.Duration
}

func (c slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(c.latency)
	return n, err
}
