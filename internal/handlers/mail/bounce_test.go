package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func report(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "bounces", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDeliveryReportsAreRead(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef@example.com"
	for name, want := range map[string][]Bounce{
		"postfix.eml": {
			{"gone@example.org", id, HardBounce, "5.1.1", "550 5.1.1 <Gone@Example.org> User unknown"},
			{"full@example.org", id, SoftBounce, "5.2.2", "552 5.2.2 Mailbox full"},
		},
		"exchange.eml": {{"nobody@tenant.example", "fedcba9876543210fedcba9876543210@example.com", HardBounce, "5.1.10",
			"550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup"}},
	} {
		got, err := ParseBounce(bytes.NewReader(report(t, name)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v (%v)", name, got, want, err)
		}
	}
	for _, none := range []string{"", "hello", "Subject: hi\r\n\r\nbody", "Content-Type: multipart/mixed; " +
		"boundary=x\r\n\r\n--x\r\n\r\na\r\n--x--\r\n"} {
		if got, err := ParseBounce(strings.NewReader(none)); err == nil {
			t.Errorf("%q is read as %+v", none, got)
		}
	}
}

func TestABounceReachesTheLedgerAndTheSuppressionList(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSink(t, nil)
			c := config(t, s, engine)
			c.VerifyWebhook = func(header http.Header, _ []byte) error {
				if header.Get("X-Test") == "" {
					return errors.New("unsigned")
				}
				return nil
			}
			h := handler(t, c)
			result, err := run(t, h, "j", 1, map[string]any{"to": "gone@example.org, full@example.org, " +
				"angry@example.org", "subject": "s", "body": "b"})
			if err != nil {
				t.Fatal(err)
			}
			mine := bytes.ReplaceAll(report(t, "postfix.eml"), []byte("0123456789abcdef0123456789abcdef@example.com"),
				[]byte(result.MessageID))
			mbox := "From MAILER-DAEMON Sun Mar  1 09:00:00 2026\n" + string(mine) + "\nFrom x Sun Mar  1 09:00:01 " +
				"2026\nSubject: no report\n\nFrom here on\n\nFrom y Sun Mar  1 09:00:02 2026\n" +
				string(report(t, "exchange.eml"))
			taken, skipped, err := h.ImportBounces(t.Context(), strings.NewReader(mbox))
			if err != nil || taken != 3 || skipped != 1 {
				t.Fatalf("%d taken, %d skipped, %v", taken, skipped, err)
			}
			if n, err := h.HandleBounceWebhook(t.Context(), http.Header{"X-Test": {"1"}},
				[]byte(`{"email":"angry@example.org","type":"complaint","reason":"spam"}`)); n != 1 || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
			list, err := h.Suppressions(t.Context(), "", 10)
			if err != nil || len(list) != 3 {
				t.Fatalf("%+v, %v", list, err)
			}
			for i, want := range []Suppression{{Recipient: "angry@example.org", Reason: Complaint},
				{Recipient: "gone@example.org", Reason: HardBounce},
				{Recipient: "nobody@tenant.example", Reason: HardBounce}} {
				if list[i].Recipient != want.Recipient || list[i].Reason != want.Reason ||
					list[i].ExpiresAt.IsZero() != (want.Reason == Complaint) {
					t.Errorf("%+v", list[i])
				}
			}
			log, err := h.Log(t.Context(), LogFilter{Statuses: []Status{Bounced}}, pageOf(10))
			if err != nil || len(log.Items) != 2 || log.Items[1].Recipient != "gone@example.org" ||
				!strings.Contains(log.Items[1].Answer, "5.1.1") {
				t.Errorf("%+v, %v", log, err)
			}
		})
	}
}

func TestABounceWebhookMustBeSignedAndReadable(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	h := handler(t, c)
	good := []byte(`[{"email":"a@b.example","type":"hard"}]`)
	if _, err := h.HandleBounceWebhook(t.Context(), nil, good); !errors.Is(err, ErrUnsigned) {
		t.Errorf("without a secret: %v", err)
	}
	c.VerifyWebhook = func(http.Header, []byte) error { return errors.New("wrong") }
	h = handler(t, c)
	if _, err := h.HandleBounceWebhook(t.Context(), nil, good); !errors.Is(err, ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	c.VerifyWebhook = func(http.Header, []byte) error { return nil }
	h = handler(t, c)
	for _, bad := range []string{"", "x", `{"email":"a@b.example","type":"odd"}`,
		`{"email":"a@b.example\r\nx","type":"hard"}`, `[1]`} {
		if n, err := h.HandleBounceWebhook(t.Context(), nil, []byte(bad)); err == nil || n != 0 {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
	}
	if list, _ := h.Suppressions(context.Background(), "", 10); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// What a server says about the sender or the message says nothing about the
// mailbox.
func TestOnlyMissingMailboxesAreHardBounces(t *testing.T) {
	for answer, want := range map[string]bool{"550 5.1.1 User unknown": true, "550 5.1.10 not found": true,
		"550 5.2.1 disabled": true, "550 No such user here": true, "551 mailbox not found": true,
		"550 5.7.1 blocked": false, "550 spam": false, "554 5.7.1 relay denied": false, "552 5.2.2 full": false,
		"550 5.7.26 unauthenticated": false, "450 4.1.1 no such user": false, "554 no such user": false} {
		var code int
		if _, err := fmt.Sscan(answer, &code); err != nil {
			t.Fatal(err)
		}
		if got := noMailbox(code, answer); got != want {
			t.Errorf("%s: %v", answer, got)
		}
	}
}

func FuzzParseBounce(f *testing.F) {
	f.Add(report(f, "postfix.eml"))
	f.Add(report(f, "exchange.eml"))
	f.Add([]byte("Content-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822;a@b.c\r\nAction: " +
		"failed\r\nStatus: 5.1.1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseBounce(bytes.NewReader(data))
		if err != nil && len(list) > 0 {
			t.Fatal("both bounces and an error")
		}
		for _, b := range list {
			if _, err := address.Parse(b.Recipient); err != nil || b.Reason == "" ||
				strings.ContainsAny(b.MessageID+b.Detail+b.Status, "\r\n\x00") {
				t.Fatalf("%+v (%v)", b, err)
			}
		}
		n := 0
		if err := eachMessage(bytes.NewReader(data), func([]byte) error { n++; return nil }); err != nil ||
			n > bytes.Count(data, []byte("From "))+1 {
			t.Fatalf("%d messages, %v", n, err)
		}
	})
}
