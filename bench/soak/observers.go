package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// observer keeps what came, in the order of its coming.
type observer struct {
	mu    sync.Mutex
	list  []seen
	times map[int]int
}

// came counts how often a key has come, this time included.
func (o *observer) came(key int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.times == nil {
		o.times = map[int]int{}
	}
	o.times[key]++
	return o.times[key]
}

func (o *observer) saw(key int, at time.Time, accepted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, seen{key, at, accepted})
}

func (o *observer) all() []seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]seen(nil), o.list...)
}

// hookSink receives webhooks on every address of loopback, so that each host
// has its own circuit breaker.
type hookSink struct {
	observer
	server *http.Server
	port   int
	down   atomic.Bool // hosts below hostsDown say nothing but 503
}

// hostsDown is the first host that stays up.
const hostsDown = 20

func newHookSink() (*hookSink, error) {
	listener, err := net.Listen("tcp", "0.0.0.0:0") //nolint:gosec,noctx // 127.0.0.0/8 and no name for it
	if err != nil {
		return nil, err
	}
	s := &hookSink{port: listener.Addr().(*net.TCPAddr).Port}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // it ends by close
	return s, nil
}

func (s *hookSink) url(host int) string { return fmt.Sprintf("http://127.0.0.%d:%d", host, s.port) }

func (s *hookSink) close() error {
	if s == nil {
		return nil
	}
	return s.server.Close()
}

func (s *hookSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	if local, is := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); is && s.down.Load() &&
		local.IP.To4()[3] < hostsDown {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	var message struct{ Data struct{ Wait, Fail int } }
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // it was cut off while it spoke
	}
	key, ours := keyOf(r.Header.Get("webhook-id"))
	if !ours { // IndexNow, and what the service tells by itself
		return
	}
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	time.Sleep(time.Duration(message.Data.Wait) * time.Millisecond)
	accepted := s.came(key) > message.Data.Fail
	s.saw(key, at, accepted)
	if !accepted {
		http.Error(w, "not now", http.StatusInternalServerError)
	}
}

// mailSink is an SMTP server. What it does with a mail is the beginning of the
// recipient's name: take, later (451 once), never (550), silent (it takes the
// mail and drops the connection instead of saying so).
type mailSink struct {
	observer
	server *smtp.Server
	port   int
}

func newMailSink() (*mailSink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // close ends it
	if err != nil {
		return nil, err
	}
	s := &mailSink{port: listener.Addr().(*net.TCPAddr).Port}
	s.server = smtp.NewServer(s)
	s.server.Domain, s.server.AllowInsecureAuth = "soak.example", true
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	go func() { _ = s.server.Serve(listener) }() // it ends by close
	return s, nil
}

func (s *mailSink) close() error {
	if s == nil {
		return nil
	}
	return s.server.Close()
}

// NewSession implements smtp.Backend.
func (s *mailSink) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{sink: s, conn: c.Conn()}, nil
}

type mailSession struct {
	sink *mailSink
	conn net.Conn
	word string
	key  int
}

func (m *mailSession) Reset()                               { m.word, m.key = "", 0 }
func (m *mailSession) Logout() error                        { return nil }
func (m *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (m *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	name, _, _ := strings.Cut(to, "@")
	word, digits, _ := strings.Cut(name, ".")
	key, err := strconv.Atoi(digits)
	if err != nil { // a notice to the administrators
		m.word, m.key = "take", -1
		return nil
	}
	m.word, m.key = word, key
	if word == "never" {
		m.sink.saw(key, time.Now(), false)
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "nobody of that name"}
	}
	return nil
}

func (m *mailSession) Data(r io.Reader) error {
	at := time.Now()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	if m.key < 0 {
		return nil
	}
	if m.word == "later" && m.sink.came(m.key) == 1 {
		m.sink.saw(m.key, at, false)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "come back later"}
	}
	m.sink.saw(m.key, at, true)
	if m.word == "silent" {
		m.conn.Close()
		return errors.New("hung up")
	}
	return nil
}
