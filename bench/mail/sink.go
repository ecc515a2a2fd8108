package main

import (
	"io"
	"log"
	"net"
	"sync/atomic"

	"github.com/emersion/go-smtp"
)

// sink is an SMTP server that takes every mail, counts it and forgets it.
type sink struct {
	server *smtp.Server
	port   int
	got    atomic.Int64
}

func newSink() (*sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // close ends it
	if err != nil {
		return nil, err
	}
	s := &sink{port: listener.Addr().(*net.TCPAddr).Port}
	s.server = smtp.NewServer(s)
	s.server.Domain = "sink.example"
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	go func() { _ = s.server.Serve(listener) }() // it ends by close
	return s, nil
}

// take returns how many mails have come since it was called last.
func (s *sink) take() int { return int(s.got.Swap(0)) }

// NewSession implements smtp.Backend.
func (s *sink) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{s}, nil }

type session struct{ sink *sink }

func (*session) Reset()                               {}
func (*session) Logout() error                        { return nil }
func (*session) Mail(string, *smtp.MailOptions) error { return nil }
func (*session) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (s *session) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	if err == nil {
		s.sink.got.Add(1)
	}
	return err
}
