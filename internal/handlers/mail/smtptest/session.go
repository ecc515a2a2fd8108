package smtptest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
)

// session is one connection.
type session struct {
	server *Server
	conn   net.Conn
	in     *textproto.Reader
	hello  bool
	mail   *Mail // since MAIL
	user   string
}

func (s *session) run() {
	s.in = textproto.NewReader(bufio.NewReader(s.conn))
	if s.say("220 sink.test ESMTP") != nil {
		return
	}
	for {
		line, err := s.in.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		if s.command(strings.ToUpper(verb), rest) != nil {
			return
		}
	}
}

func (s *session) say(lines ...string) error {
	_, err := io.WriteString(s.conn, strings.Join(lines, "\r\n")+"\r\n")
	return err
}

// command answers one line; an error ends the session.
func (s *session) command(verb, rest string) error {
	switch verb {
	case "EHLO", "HELO":
		return s.greet(verb, rest)
	case "STARTTLS":
		return s.encrypt()
	case "AUTH":
		return s.signIn(rest)
	case "MAIL":
		return s.from(rest)
	case "RCPT":
		return s.to(rest)
	case "DATA":
		return s.data()
	case "RSET":
		s.mail = nil
		return s.say("250 2.0.0 reset")
	case "NOOP":
		return s.say("250 2.0.0 still here")
	case "QUIT":
		_ = s.say("221 2.0.0 bye") // it ends in any case
		return errEnd
	}
	return s.say("500 5.5.2 no such command")
}

func (s *session) encrypted() bool {
	_, is := s.conn.(*tls.Conn)
	return is
}

func (s *session) greet(verb, name string) error {
	s.hello, s.mail = true, nil
	if s.server.Hello != nil {
		s.server.Hello(name)
	}
	if verb == "HELO" {
		return s.say("250 sink.test")
	}
	offers := []string{"sink.test", "PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES",
		fmt.Sprintf("SIZE %d", maxMail)}
	if s.server.TLS != nil && !s.encrypted() {
		offers = append(offers, "STARTTLS")
	}
	if s.server.User != "" && s.encrypted() {
		offers = append(offers, "AUTH PLAIN")
	}
	for i := range offers[:len(offers)-1] {
		offers[i] = "250-" + offers[i]
	}
	offers[len(offers)-1] = "250 " + offers[len(offers)-1]
	return s.say(offers...)
}

func (s *session) encrypt() error {
	if s.server.TLS == nil || s.encrypted() {
		return s.say("502 5.5.1 not now")
	}
	if err := s.say("220 2.0.0 go ahead"); err != nil {
		return err
	}
	conn := tls.Server(s.conn, s.server.TLS)
	if err := conn.Handshake(); err != nil {
		return err
	}
	s.conn, s.in = conn, textproto.NewReader(bufio.NewReader(conn))
	s.hello, s.mail, s.user = false, nil, ""
	return nil
}

// signIn is AUTH PLAIN, whose answer may come on a separate line.
func (s *session) signIn(rest string) error {
	mechanism, answer, there := strings.Cut(rest, " ")
	switch {
	case !s.hello || s.mail != nil || s.user != "":
		return s.say("503 5.5.1 not now")
	case !s.encrypted():
		return s.say("523 5.7.10 encryption is needed")
	case !strings.EqualFold(mechanism, "PLAIN") || s.server.User == "":
		return s.say("504 5.7.4 no such mechanism")
	}
	if !there {
		if err := s.say("334 "); err != nil {
			return err
		}
		var err error
		if answer, err = s.in.ReadLine(); err != nil {
			return err
		}
	}
	raw, err := base64.StdEncoding.DecodeString(answer)
	parts := bytes.Split(raw, []byte{0})
	if err != nil || len(parts) != 3 {
		return s.say("501 5.5.2 no answer of PLAIN")
	}
	if string(parts[1]) != s.server.User || string(parts[2]) != s.server.Password {
		return s.say("535 5.7.8 Authentication failed")
	}
	s.user = string(parts[1])
	return s.say("235 2.0.0 welcome")
}

func (s *session) from(rest string) error {
	address, is := path(rest, "FROM:")
	switch {
	case !s.hello || s.mail != nil:
		return s.say("503 5.5.1 not now")
	case !is:
		return s.say("501 5.5.4 write MAIL FROM:<address>")
	}
	s.mail = &Mail{From: address, User: s.user, TLS: s.encrypted()}
	return s.say("250 2.0.0 go on")
}

func (s *session) to(rest string) error {
	address, is := path(rest, "TO:")
	switch {
	case s.mail == nil:
		return s.say("503 5.5.1 not now")
	case !is || address == "":
		return s.say("501 5.5.4 write RCPT TO:<address>")
	case s.server.MaxRecipients > 0 && len(s.mail.To) >= s.server.MaxRecipients:
		return s.say(fmt.Sprintf("452 4.5.3 at most %d recipients", s.server.MaxRecipients))
	}
	if s.server.Rcpt != nil {
		if err := s.server.Rcpt(address); err != nil {
			return s.say(answerOf(err))
		}
	}
	s.mail.To = append(s.mail.To, address)
	return s.say("250 2.0.0 taken")
}

func (s *session) data() error {
	if s.mail == nil || len(s.mail.To) == 0 {
		return s.say("503 5.5.1 not now")
	}
	if err := s.say("354 go ahead"); err != nil {
		return err
	}
	raw, err := s.content()
	mail := *s.mail
	s.mail = nil
	if err == nil {
		mail.Data = raw
		if s.server.Data != nil {
			err = s.server.Data(mail)
		}
	} else if !errors.Is(err, errTooLarge) {
		return err // the connection broke: nobody waits for an answer
	}
	if err != nil {
		return s.say(answerOf(err))
	}
	return s.say("250 2.0.0 taken")
}

// content reads until the line with the lone dot. Lines end with CRLF: a lone LF is part
// of its line, as in a server that cannot be smuggled through.
func (s *session) content() ([]byte, error) {
	var all []byte
	tooLarge := false
	for begin := true; ; {
		piece, err := s.in.R.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if begin && string(piece) == ".\r\n" {
			break
		}
		if begin && len(piece) > 0 && piece[0] == '.' {
			piece = piece[1:]
		}
		begin = bytes.HasSuffix(piece, []byte("\r\n")) || len(piece) == 1 && bytes.HasSuffix(all, []byte("\r"))
		if tooLarge = tooLarge || len(all)+len(piece) > maxMail; !tooLarge {
			all = append(all, piece...)
		}
	}
	if tooLarge {
		return nil, errTooLarge
	}
	return all, nil
}

// path is the address of MAIL and RCPT, without the parameters behind it.
func path(rest, word string) (address string, ok bool) {
	if len(rest) < len(word) || !strings.EqualFold(rest[:len(word)], word) {
		return "", false
	}
	rest = strings.TrimSpace(rest[len(word):])
	end := strings.LastIndexByte(rest, '>')
	if end < 1 || rest[0] != '<' {
		return "", false
	}
	return rest[1:end], true
}
