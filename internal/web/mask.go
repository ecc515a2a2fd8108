package web

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// masked stands where a secret was.
const masked = redact.Mask

// viewer is ops.Viewer for what only this package shows.
type viewer struct{ ops.Viewer }

// viewer is the view that the caller may have: who may not operate sees no
// texts of mails, no deliveries, no addresses of the network inside.
func (s *Server) viewer(c echo.Context) viewer {
	if who(c).Scopes.Has(access.Operate) {
		return s.viewerFor(redact.Operators)
	}
	return s.viewerFor(redact.Readers)
}

// public is the view of what goes to listeners of any right.
func (s *Server) public() viewer { return s.viewerFor(redact.Readers) }

func (s *Server) viewerFor(to redact.Audience) viewer {
	return viewer{ops.Viewer{Mask: s.mask, To: to, Registry: s.cfg.Registry}}
}

// known says whether a name is a type here.
func (s *Server) known(name string) bool {
	_, ok := s.cfg.Registry.Lookup(name)
	return ok
}

// mail is one of the list: what its server said may name tokens and hosts.
func (v viewer) mail(m Mail) Mail {
	m.Answer, m.Problem = v.Text(m.Answer), v.Text(m.Problem)
	m.Subject = v.Text(m.Subject)
	m.Tries = ops.Each(m.Tries, func(t MailTry) MailTry { t.Answer = v.Text(t.Answer); return t })
	m.Others = ops.Each(m.Others, v.mail)
	if len(m.Tries) == 0 {
		m.Tries = nil
	}
	if len(m.Others) == 0 {
		m.Others = nil
	}
	return m
}

// webhook is a subscription without its secret. Its address may be one, too.
func (v viewer) webhook(w Webhook) Webhook {
	w.Secret, w.URL, w.Note = "", redact.Address(v.To, w.URL), v.Text(w.Note)
	return w
}

// delivery is one sending; what was sent and answered is for operators.
func (v viewer) delivery(d Delivery) Delivery {
	d.Answer = v.Text(d.Answer)
	d.Request = v.requestBody(d.Request)
	if v.To < redact.Operators {
		d.Request, d.Answer = "", ""
	}
	return d
}

// requestBody is a body that was sent; one that was cut is text.
func (v viewer) requestBody(body string) string {
	if json.Valid([]byte(body)) {
		return string(v.Payload(deliveryKind, []byte(body)))
	}
	return v.Text(body)
}

func (v viewer) backup(b Backup) Backup {
	b.Verdict = v.Text(b.Verdict)
	return b
}

func (v viewer) sitemap(s SitemapStatus) SitemapStatus {
	s.Files = ops.Each(s.Files, same)
	s.Submissions = ops.Each(s.Submissions, func(x Submission) Submission { x.Note = v.Text(x.Note); return x })
	return s
}

// clip cuts text to n bytes at most, at a rune's border, and shows that it did.
func clip(text string, n int) string { return redact.Clip(text, n) }
