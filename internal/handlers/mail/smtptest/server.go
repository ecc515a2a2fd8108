package smtptest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// Server is a mail server. Its fields are set before the first connection.
type Server struct {
	// TLS, where it is set, offers STARTTLS.
	TLS *tls.Config
	// User and Password, where they are set, offer AUTH PLAIN, over TLS only; mail needs no
	// sign-in.
	User, Password string
	// MaxRecipients of one mail: the next one is refused with 452; 0 is no limit.
	MaxRecipients int
	// Hello receives the name of each greeting.
	Hello func(name string)
	// Rcpt and Data say whether a recipient and a whole mail are taken; nil takes all. An
	// error that is no *Refusal is answered with 554.
	Rcpt func(to string) error
	Data func(Mail) error

	mu          sync.Mutex
	closed      bool
	listeners   []net.Listener
	connections map[net.Conn]bool
}

// Mail is one transaction as the server saw it.
type Mail struct {
	From string
	To   []string
	Data []byte // with CRLF, dots unstuffed
	User string // who signed in
	TLS  bool
}

// Refusal is an answer that takes something not.
type Refusal struct {
	Code     int
	Enhanced string // as 5.1.1
	Message  string
}

// Error is the answer's line.
func (r *Refusal) Error() string { return fmt.Sprintf("%d %s %s", r.Code, r.Enhanced, r.Message) }

// maxMail bounds what a test may send by mistake.
const maxMail = 64 << 20

// Listen starts the server on a free port of the loopback interface until the test ends.
func (s *Server) Listen(t testing.TB) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(s.Close)
	return l.Addr().(*net.TCPAddr).Port
}

// Serve answers the connections of a listener, of TLS perhaps, until Close.
func (s *Server) Serve(l net.Listener) {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	closed := s.closed
	s.mu.Unlock()
	if closed {
		l.Close()
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !s.keep(c) {
			c.Close()
			return
		}
		go func() {
			defer s.drop(c)
			(&session{server: s, conn: c}).run()
		}()
	}
}

func (s *Server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections == nil {
		s.connections = map[net.Conn]bool{}
	}
	s.connections[c] = true
	return !s.closed
}

func (s *Server) drop(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
	c.Close()
}

// Close ends the listeners and all connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.listeners {
		l.Close()
	}
	for c := range s.connections {
		c.Close()
	}
}

// answerOf is the line that tells the client of an error.
func answerOf(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Error()
	}
	return "554 5.0.0 " + err.Error()
}

var errTooLarge = &Refusal{552, "5.3.4", "the mail is too large"}

// errEnd ends a session without an answer.
var errEnd = io.EOF
