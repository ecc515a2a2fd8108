package mail

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func TestTLSFromTheFirstByteAndTheNameWeGreetWith(t *testing.T) {
	s := newSink(t, nil)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", s.server.TLS)
	if err != nil {
		t.Fatal(err)
	}
	go s.server.Serve(listener)
	c := config(t, s, jobstest.SQLite)
	c.Transport.Port, c.Transport.TLS, c.Transport.EHLO = listener.Addr().(*net.TCPAddr).Port, TLSImplicit,
		"jobs.example.com"
	h := handler(t, c)
	if _, err := run(t, h, "j", 1, map[string]any{"to": "a@example.net", "subject": "s", "body": "b"}); err != nil {
		t.Fatal(err)
	}
	if got := s.all(); len(got) != 1 || !got[0].tls || got[0].user != user {
		t.Fatalf("over TLS and signed in? %+v", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hello != "jobs.example.com" {
		t.Errorf("greeted as %q", s.hello)
	}
}

func TestObjectsOfTheStoreAreAttached(t *testing.T) {
	store, err := storage.NewLocal(t.TempDir(), storage.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("%PDF-1.7 an invoice")
	if err := store.Put(t.Context(), "invoices/12.pdf", bytes.NewReader(text), storage.PutOptions{
		ExpectedSize: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Store = store
	send := func(h *Handler, uuid, key string) error {
		_, err := run(t, h, uuid, 1, map[string]any{"to": "a@example.net", "subject": "s", "body": "b",
			"attachments": []any{map[string]any{"key": key}}})
		return err
	}
	h := handler(t, c)
	if err := send(h, "there", "invoices/12.pdf"); err != nil {
		t.Fatal(err)
	}
	if got := s.all(); len(got) != 1 || !bytes.Equal(parse(t, got[0].data).attachments["12.pdf"], text) {
		t.Errorf("the object did not arrive as it is: %+v", got)
	}
	if err := send(h, "missing", "invoices/13.pdf"); !jobs.IsPermanent(err) {
		t.Errorf("one that is not there: %v", err)
	}
	c.MaxAttachmentBytes = int64(len(text)) - 1
	if err := send(handler(t, c), "large", "invoices/12.pdf"); !jobs.IsPermanent(err) ||
		!strings.Contains(err.Error(), "mail.max_size") {
		t.Errorf("one that is too large: %v", err)
	}
	if len(s.all()) != 1 {
		t.Error("a mail without its attachment was sent")
	}
}

func TestTheLogDriverSendsNothingAndLogsNoBody(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Transport.Driver = DriverLog
	var log bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	result, err := run(t, handler(t, c), "j", 1, map[string]any{"to": "a@example.net", "subject": "s",
		"body": "https://example.com/reset/s3cret"})
	if err != nil || result.Recipients[Accepted] != 1 || len(s.all()) != 0 {
		t.Errorf("%+v, %v, %d sent", result, err, len(s.all()))
	}
	if text := log.String(); !strings.Contains(text, "a@example.net") || strings.Contains(text, "s3cret") {
		t.Errorf("the log says %s", text)
	}
}
