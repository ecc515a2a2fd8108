package mail

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// script is an SMTP server that misbehaves at one step: it says something
// else, nothing at all, or hangs up.
type script struct {
	port int

	mu       sync.Mutex
	step     string // "connect", "EHLO", "MAIL", "RCPT", "DATA", "text", "dot"; "" behaves
	fault    string // "close", "hang", or an answer
	stores   bool   // whether what came up to the dot is kept although the fault is there
	mail     [][]string
	ids      []string
	pipeline bool
}

func newScript(t *testing.T) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{port: l.Addr().(*net.TCPAddr).Port}
	var group sync.WaitGroup
	var conns []net.Conn
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			conns = append(conns, c)
			s.mu.Unlock()
			group.Go(func() { defer c.Close(); s.talk(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		s.mu.Unlock()
		group.Wait()
	})
	return s
}

func (s *script) set(step, fault string, stores bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step, s.fault, s.stores = step, fault, stores
}

// at says what to answer at a step: the normal answer, or the fault.
func (s *script) at(c net.Conn, r *bufio.Reader, step, normal string) bool {
	s.mu.Lock()
	faulty, fault := s.step == step, s.fault
	s.mu.Unlock()
	switch {
	case !faulty:
		fmt.Fprintf(c, "%s\r\n", normal)
		return true
	case fault == "close":
		return false
	case fault == "hang":
		r.ReadByte() // until the client gives up
		return false
	}
	fmt.Fprintf(c, "%s\r\n", fault)
	return !strings.HasPrefix(fault, "421")
}

func (s *script) talk(c net.Conn) {
	r := bufio.NewReader(c)
	if !s.at(c, r, "connect", "220 script ESMTP") {
		return
	}
	var to []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		alive := true
		switch verb, arg, _ := strings.Cut(strings.TrimSpace(line), " "); strings.ToUpper(verb) {
		case "EHLO":
			extensions := "250-script\r\n250-ENHANCEDSTATUSCODES\r\n250 8BITMIME"
			if s.pipeline {
				extensions = "250-script\r\n250-PIPELINING\r\n250 8BITMIME"
			}
			alive = s.at(c, r, "EHLO", extensions)
		case "MAIL":
			to = nil
			alive = s.at(c, r, "MAIL", "250 ok")
		case "RCPT":
			to = append(to, strings.Trim(strings.TrimPrefix(arg, "TO:"), "<>"))
			alive = s.at(c, r, "RCPT", "250 ok")
		case "DATA":
			alive = s.at(c, r, "DATA", "354 go on")
			s.mu.Lock()
			faulty := s.step == "DATA"
			s.mu.Unlock()
			if alive && !faulty {
				alive = s.text(c, r, to)
			}
		case "QUIT":
			fmt.Fprint(c, "221 bye\r\n")
			return
		default:
			fmt.Fprint(c, "250 ok\r\n")
		}
		if !alive {
			return
		}
	}
}

// text reads the message up to the final dot and answers.
func (s *script) text(c net.Conn, r *bufio.Reader, to []string) bool {
	id := ""
	for n := 0; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil {
			return false
		}
		if n == 3 {
			s.mu.Lock()
			faulty := s.step == "text"
			s.mu.Unlock()
			if faulty {
				return s.at(c, r, "text", "")
			}
		}
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "Message-ID") {
			id = strings.TrimSpace(value)
		}
		if line == ".\r\n" {
			break
		}
	}
	s.mu.Lock()
	if s.step != "dot" || s.stores {
		s.mail, s.ids = append(s.mail, to), append(s.ids, id)
	}
	s.mu.Unlock()
	return s.at(c, r, "dot", "250 queued as 1")
}

func (s *script) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, to := range s.mail {
		for _, r := range to {
			n[r]++
		}
	}
	return n
}

func scripted(t *testing.T, s *script) Config {
	c := config(t, nil, jobstest.SQLite)
	c.Transport = Transport{Driver: DriverSMTP, Host: "127.0.0.1", Port: s.port, FromAddress: "a@example.com",
		TLS: TLSNone}
	c.CommandTimeout, c.AnswerTimeout = 30*time.Second, 30*time.Second // a slow machine is no fault
	return c
}

var steps = []string{"connect", "EHLO", "MAIL", "RCPT", "DATA", "text", "dot"}

// A server that fails at any step, in any way, on a fresh connection or a
// reused one: nobody gets two, and nobody gets none without the job saying so.
func TestAServerThatDiesAtEachStep(t *testing.T) {
	for _, step := range steps {
		for _, fault := range []string{"close", "hang", "421 4.3.2 shutting down", "451 4.3.0 later", "550 5.7.1 no"} {
			for _, reused := range []bool{false, true} {
				for _, pipeline := range []bool{false, true} {
					if step == "text" && fault != "close" && fault != "hang" {
						continue // nobody answers in the middle of a text
					}
					t.Run(fmt.Sprintf("%s/%.3s/reused=%v/pipeline=%v", step, fault, reused, pipeline),
						func(t *testing.T) {
							t.Parallel()
							dies(t, step, fault, reused, pipeline)
						})
				}
			}
		}
	}
}

func dies(t *testing.T, step, fault string, reused, pipeline bool) {
	s := newScript(t)
	s.pipeline = pipeline
	c := scripted(t, s)
	if fault == "hang" {
		c.CommandTimeout, c.AnswerTimeout = 2*time.Second, 2*time.Second
	}
	payload := map[string]any{"to": "x@example.net, y@example.net", "subject": "s", "body": "b"}
	if step == "text" { // more than the two kernels' buffers hold: the dot is not on its way when the server dies
		c.AttachmentRoots = []string{t.TempDir()}
		if err := os.WriteFile(filepath.Join(c.AttachmentRoots[0], "big"), make([]byte, 12<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		payload["attachments"] = []string{"big"}
	}
	h := handler(t, c)
	if reused {
		if _, err := run(t, h, "warm-up", 1, map[string]any{"to": "warm@example.net", "subject": "s",
			"body": "b"}); err != nil {
			t.Fatal(err)
		}
	}
	s.set(step, fault, true)
	result, first := run(t, h, "job", 1, payload)
	silent := step == "dot" && (fault == "close" || fault == "hang")
	reconnects := reused && (step == "connect" || step == "EHLO") // not asked again on an open connection
	switch {
	case reconnects:
		if first != nil {
			t.Errorf("the open connection was not used: %v", first)
		}
	case step == "EHLO" && (fault[:3] == "451" || fault[0] == '5'):
		if first != nil { // RFC 5321, 4.1.1.1: then HELO
			t.Errorf("HELO was not tried: %v", first)
		}
	case silent:
		if !jobs.IsPermanent(first) || result.Recipients[Unknown] != 2 ||
			!strings.Contains(first.Error(), result.MessageID) {
			t.Errorf("a server that died before its answer: %v, %v", first, result.Recipients)
		}
	case step == "dot" && fault[:3] == "421":
		if first == nil {
			t.Error("nobody answered, and all is well?")
		}
	case fault[0] == '5' && step != "connect" && step != "EHLO":
		if !jobs.IsPermanent(first) || result.Recipients[Refused] != 2 {
			t.Errorf("a refusal for good: %v, %v", first, result.Recipients)
		}
	default:
		if first == nil || jobs.IsPermanent(first) || result.Recipients[Deferred] != 2 {
			t.Errorf("trouble that passes: %v, %v", first, result.Recipients)
		}
	}
	s.set("", "", false)
	_, second := run(t, h, "job", 2, payload)
	for _, to := range []string{"x@example.net", "y@example.net"} {
		n := s.counts()[to]
		if step == "dot" && (fault[0] == '4' || fault[0] == '5') {
			n-- // the script keeps what it refused
		}
		if n > 1 {
			t.Errorf("%s got %d mails", to, n)
		}
		if n <= 0 && second == nil {
			t.Errorf("%s got nothing, and the job says all is well", to)
		}
	}
}

func TestALostMailIsToldOf(t *testing.T) {
	s := newScript(t)
	h := handler(t, scripted(t, s))
	s.set("dot", "close", false) // it died before it stored the mail
	payload := map[string]any{"to": "x@example.net", "subject": "s", "body": "b"}
	for attempt := 1; attempt <= 3; attempt++ {
		if _, err := run(t, h, "job", attempt, payload); !jobs.IsPermanent(err) {
			t.Errorf("attempt %d: %v", attempt, err)
		}
		s.set("", "", false)
	}
	if n := s.counts()["x@example.net"]; n != 0 {
		t.Errorf("sent %d times without being asked to", n)
	}
	if n, err := h.SendUnknown(t.Context(), "job"); err != nil || n != 1 {
		t.Fatalf("SendUnknown: %d, %v", n, err)
	}
	if _, err := run(t, h, "job", 4, payload); err != nil || s.counts()["x@example.net"] != 1 {
		t.Errorf("after a person said so: %v, %d mails", err, s.counts()["x@example.net"])
	}
}

func TestResendUnknownSendsTheSameMailAgain(t *testing.T) {
	s := newScript(t)
	c := scripted(t, s)
	c.ResendUnknown = true
	h := handler(t, c)
	s.set("dot", "close", true)
	payload := map[string]any{"to": "x@example.net", "subject": "s", "body": "b"}
	if _, err := run(t, h, "job", 1, payload); err == nil || jobs.IsPermanent(err) {
		t.Fatalf("it is to be tried again: %v", err)
	}
	s.set("", "", false)
	if _, err := run(t, h, "job", 2, payload); err != nil {
		t.Fatal(err)
	}
	if len(s.ids) != 2 || s.ids[0] != s.ids[1] || s.ids[0] == "" {
		t.Errorf("Message-IDs %q", s.ids)
	}
}

// Two runs of one job at the same time, as after a lost lease: the ledger lets
// one of them send.
func TestTwoRunsOfOneJobSendOneMail(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSink(t, nil)
			h := handler(t, config(t, s, engine))
			var group sync.WaitGroup
			for i := range 8 {
				for range 2 {
					group.Go(func() {
						run(t, h, fmt.Sprint("job-", i), 1, map[string]any{
							"to": []string{"a@example.net", "b@example.net"}, "subject": fmt.Sprint(i), "body": "b"})
					})
				}
			}
			group.Wait()
			seen := map[string]int{}
			for _, got := range s.all() {
				for _, to := range got.to {
					p := parse(t, got.data)
					seen[p.header.Get("Subject")+to]++
				}
			}
			for key, n := range seen {
				if n > 1 {
					t.Errorf("%s: %d mails", key, n)
				}
			}
			if len(seen) != 16 {
				t.Errorf("%d of 16 got a mail", len(seen))
			}
		})
	}
}

func TestNoStateIsBothOpenAndSettled(t *testing.T) {
	d := delivery{h: &Handler{}}
	a := address.Address{Mailbox: "a@b.c"}
	var open []Status
	for _, state := range []Status{"", Sending, Accepted, Deferred, Refused, Unknown, Suppressed, Expired, Bounced} {
		d.known = map[string]Status{a.Key(): state}
		if d.open(a) {
			open = append(open, state)
		}
	}
	if !slices.Equal(open, []Status{"", Deferred}) {
		t.Errorf("open statuses: %q", open)
	}
}
