package mail

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/smtptest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/templates"
)

// received is one transaction as the server saw it.
type received struct {
	from string
	to   []string
	data []byte
	user string
	tls  bool
	at   time.Time
}

// sink is an SMTP server with STARTTLS and AUTH, which may be asked to refuse.
type sink struct {
	port   int
	server *smtptest.Server
	roots  *x509.CertPool

	mu       sync.Mutex
	got      []received
	sessions int
	hello    string                   // the name that the last client greeted with
	rcpt     func(to string) error    // nil takes all
	data     func(got received) error // nil takes all
}

const user, password = "cms", "s3cret pässword"

func newSink(t testing.TB, change func(*smtptest.Server)) *sink {
	t.Helper()
	certificate, roots := certify(t)
	s := &sink{roots: roots}
	s.server = &smtptest.Server{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}, User: user,
		Password: password, Hello: s.greeted, Rcpt: s.take, Data: s.keep}
	if change != nil {
		change(s.server)
	}
	s.port = s.server.Listen(t)
	return s
}

func certify(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sink"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{
			net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}

func (s *sink) greeted(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	s.hello = name
}

// on says what to do at RCPT and after a whole message; nil takes all.
func (s *sink) on(rcpt func(to string) error, data func(received) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rcpt, s.data = rcpt, data
}

func (s *sink) hooks() (func(string) error, func(received) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rcpt, s.data
}

func (s *sink) all() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.got...)
}

func (s *sink) take(to string) error {
	if rcpt, _ := s.hooks(); rcpt != nil {
		return rcpt(to)
	}
	return nil
}

func (s *sink) keep(m smtptest.Mail) error {
	got := received{from: m.From, to: m.To, data: m.Data, user: m.User, tls: m.TLS, at: time.Now()}
	if _, hook := s.hooks(); hook != nil {
		if err := hook(got); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, got)
	return nil
}

var errNoUser = &smtptest.Refusal{Code: 550, Enhanced: "5.1.1", Message: "no such user"}
var errLater = &smtptest.Refusal{Code: 451, Enhanced: "4.3.0", Message: "try again later"}

// site is a CMS without settings, on a fresh database with our tables.
func site(t testing.TB, engine jobstest.Engine) (*cms.Site, *jobstest.Database) {
	t.Helper()
	db := jobstest.Migrated(t, engine)
	return &cms.Site{DB: db.DB, Env: cms.Env{"APP_URL": "https://example.com", "APP_NAME": "Example"}}, db
}

// config sends through s, from a separate site.
func config(t testing.TB, s *sink, engine jobstest.Engine) Config {
	t.Helper()
	cmsSite, db := site(t, engine)
	c := Config{Site: cmsSite, DB: db.DB, Templates: templates.Mail(), Now: time.Now,
		Logger: slog.New(slog.DiscardHandler),
		Transport: Transport{Driver: DriverSMTP, Host: "127.0.0.1", FromName: "Example",
			FromAddress: "noreply@example.com", TLS: TLSStart, Username: user, Password: password}}
	if s != nil {
		c.Transport.Port = s.port
		c.TLS = &tls.Config{RootCAs: s.roots}
	}
	return c
}

func handler(t testing.TB, c Config) *Handler {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// run runs a job as a worker would, through the registry.
func run(t testing.TB, h *Handler, uuid string, attempt int, payload any) (Result, error) {
	t.Helper()
	job, ctx, outcome := prepared(t, h, uuid, attempt, payload)
	r := jobs.NewRegistry()
	h.Register(r)
	entry, _ := r.Lookup("email.send")
	err := entry.Run(ctx, job)
	return outcome(), err
}

func body(got received) string {
	return string(bytes.ReplaceAll(got.data, []byte("\r\n"), []byte("\n")))
}
