package mail

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap"
	"github.com/emersion/go-imap/backend/memory"
	"github.com/emersion/go-imap/server"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// letterbox is a real IMAP server with TLS and one mailbox, and a second
// connection to it that puts messages in and looks at them.
type letterbox struct {
	t    *testing.T
	at   Mailbox
	tls  *tls.Config
	look *mailboxClient
}

func newLetterbox(t *testing.T) *letterbox { return letterboxWith(t, TLSImplicit) }

func letterboxWith(t *testing.T, secure string) *letterbox {
	t.Helper()
	certificate, roots := certify(t)
	own := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(memory.New())
	if secure == TLSStart {
		s.TLSConfig = own
	} else {
		listener = tls.NewListener(listener, own)
	}
	s.ErrorLog = log.New(io.Discard, "", 0)
	go s.Serve(listener)
	t.Cleanup(func() { s.Close() })
	b := &letterbox{t: t, tls: &tls.Config{RootCAs: roots},
		at: Mailbox{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Username: "username",
			Password: "password", TLS: secure}}
	if b.look, err = b.at.open(t.Context(), b.tls, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.look.Logout() })
	return b
}

func (b *letterbox) put(text []byte) {
	b.t.Helper()
	if err := b.look.Append("INBOX", nil, time.Now(), bytes.NewReader(text)); err != nil {
		b.t.Fatal(err)
	}
}

// subjects are those of what stands in a folder, or of what is unread there.
func (b *letterbox) subjects(folder string, unread bool) []string {
	b.t.Helper()
	status, err := b.look.Select(folder, true)
	if err != nil {
		b.t.Fatal(err)
	}
	all := new(imap.SeqSet)
	all.AddRange(1, max(status.Messages, 1))
	messages := make(chan *imap.Message, 100)
	if err := b.look.Fetch(all, []imap.FetchItem{imap.FetchEnvelope, imap.FetchFlags}, messages); err != nil {
		b.t.Fatal(err)
	}
	var list []string
	for m := range messages {
		if !unread || !slices.Contains(m.Flags, imap.SeenFlag) {
			list = append(list, m.Envelope.Subject)
		}
	}
	return list
}

func readMailbox(t *testing.T, h *Handler) (MailboxResult, error) {
	t.Helper()
	r := jobs.NewRegistry()
	h.Register(r)
	entry, known := r.Lookup(ReadBounces.Name)
	if !known {
		t.Fatal("mail.bounces is no type")
	}
	kept := jobs.NewRun(time.Now)
	err := entry.Run(jobs.WithRun(t.Context(), kept), jobs.Job{UUID: "b", Type: ReadBounces.Name, Attempt: 1,
		Data: json.RawMessage("{}")})
	var result MailboxResult
	if raw, _ := kept.Result(); raw != nil {
		if err := json.Unmarshal(raw, &result); err != nil {
			t.Error(err)
		}
	}
	return result, err
}

func TestAMailboxOfBouncesIsReadOnce(t *testing.T) {
	box := newLetterbox(t)
	if err := box.look.Create("Done"); err != nil {
		t.Fatal(err)
	}
	box.put(report(t, "postfix.eml"))
	box.put([]byte("Subject: a question\r\nFrom: zoe@example.net\r\n\r\nWhen do you open?\r\n"))
	box.put(report(t, "exchange.eml"))
	c := config(t, nil, jobstest.SQLite)
	c.TLS, c.Mailbox = box.tls, box.at
	c.Mailbox.MoveTo = "Done"
	h := handler(t, c)
	got, err := readMailbox(t, h)
	// The server's own first message is no report either.
	if want := (MailboxResult{Bounces: 3, Reports: 2, Others: 2}); err != nil || got != want {
		t.Fatalf("%+v, want %+v (%v)", got, want, err)
	}
	list, err := h.Suppressions(t.Context(), "", 10)
	if err != nil || len(list) != 2 || list[0].Recipient != "gone@example.org" ||
		list[1].Recipient != "nobody@tenant.example" {
		t.Errorf("suppressed are %+v (%v)", list, err)
	}
	if left := box.subjects("INBOX", true); !slices.Equal(left, []string{"a question"}) {
		t.Errorf("unread in the inbox are %q: a person's question must stay", left)
	}
	if moved := box.subjects("Done", false); len(moved) != 2 {
		t.Errorf("moved were %q", moved)
	}
	if _, err := h.Unsuppress(t.Context(), "gone@example.org"); err != nil {
		t.Fatal(err)
	}
	if got, err := readMailbox(t, h); err != nil || got != (MailboxResult{}) {
		t.Errorf("the second time: %+v, %v", got, err)
	}
}

// As dovecot offers it, over STARTTLS, and into a folder that nobody has made.
func TestReportsAreReadOverSTARTTLSAndMovedToANewFolder(t *testing.T) {
	box := letterboxWith(t, TLSStart)
	box.put(report(t, "postfix.eml"))
	box.put(report(t, "exchange.eml"))
	c := config(t, nil, jobstest.SQLite)
	c.TLS, c.Mailbox = box.tls, box.at
	c.Mailbox.MoveTo = "Bounces"
	if got, err := readMailbox(t, handler(t, c)); err != nil || got.Reports != 2 || got.Bounces != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if moved := box.subjects("Bounces", false); len(moved) != 2 {
		t.Errorf("moved were %q", moved)
	}
}

func TestAMailboxIsOpenedSafely(t *testing.T) {
	box := newLetterbox(t)
	c := config(t, nil, jobstest.SQLite)
	c.Mailbox = box.at // and no roots: nobody vouches for the server
	if _, err := readMailbox(t, handler(t, c)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	c.TLS, c.Mailbox.Password = box.tls, "wrong-p4ss"
	if _, err := readMailbox(t, handler(t, c)); err == nil || jobs.IsPermanent(err) ||
		strings.Contains(err.Error(), "wrong-p4ss") {
		t.Errorf("a wrong password: %v", err)
	}
	c.Mailbox.Host, c.Mailbox.TLS = "mail.example.com", TLSNone
	if _, err := New(c); err == nil {
		t.Error("a password may cross the network in clear")
	}
}
