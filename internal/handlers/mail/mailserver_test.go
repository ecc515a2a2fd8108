package mail

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The CMS's settings cannot make the service talk to what only it can reach,
// nor read out what that says.
func TestAHostFromTheSettingsIsPublicOrAllowed(t *testing.T) {
	var reached atomic.Int32
	port := hostile(t, func(c net.Conn, _ *bufio.Reader) {
		reached.Add(1)
		fmt.Fprint(c, "550 internal banner SECRETBANNER\r\n")
	})
	c := config(t, nil, jobstest.SQLite)
	settings := cms.Settings{"email_driver": "smtp", "email_host": "127.0.0.1", "email_port": fmt.Sprint(port)}
	h := handler(t, c)
	foreign, err := h.transport(settings)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.pool.dial(t.Context(), foreign); err == nil ||
		!strings.Contains(err.Error(), "mail.allow_private") || strings.Contains(err.Error(), "SECRET") ||
		reached.Load() != 0 {
		t.Errorf("connected %d times: %v", reached.Load(), err)
	}
	if err := h.Greet(t.Context(), foreign); err == nil || reached.Load() != 0 {
		t.Errorf("the greeting is fetched, %d times: %v", reached.Load(), err)
	}
	c.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if _, err := handler(t, c).pool.dial(t.Context(), foreign); err == nil || reached.Load() == 0 {
		t.Errorf("what is allowed is not reached: %v", err)
	}
	c.Pin, c.Transport.Port = true, 2525
	got, err := handler(t, c).transport(cms.Settings{"email_driver": "log", "email_host": "evil.example",
		"email_port": "1", "email_username": "x", "email_encryption": "ssl", "email_from_name": "Shop"})
	if err != nil || got.Driver != DriverSMTP || got.Host != c.Transport.Host || got.Port != 2525 ||
		got.Username != user || got.TLS != c.Transport.TLS || got.FromName != "Shop" {
		t.Errorf("pinned, but %+v (%v)", got, err)
	}
}

func TestOneRecipientRefusesSeveralInOneText(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.OneRecipient = true
	h := handler(t, c)
	for field, value := range map[string]string{"to": "a@x.example, evil@y.example", "cc": "a@x.example,b@x.example",
		"bcc": "a@x.example,b@x.example"} {
		payload := map[string]any{"to": "a@b.example", "subject": "s", "body": "b"}
		payload[field] = value
		if _, err := run(t, h, "several-"+field, 1, payload); !jobs.IsPermanent(err) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if n := len(s.all()); n != 0 {
		t.Errorf("%d mails went out", n)
	}
	for i, to := range []any{"a@b.example", `"Last, First" <a@b.example>`, []string{"a@b.example", "c@d.example"}} {
		if _, err := run(t, h, fmt.Sprint("good", i), 1, map[string]any{
			"to": to, "subject": "s", "body": "b"}); err != nil {
			t.Errorf("%v: %v", to, err)
		}
	}
}
