package web

import (
	"encoding/json"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// masked stands where a secret was.
const masked = redact.Mask

// viewer shows things to one audience, secrets hidden. Whatever a job, a server
// or a person wrote goes through it on its way out.
type viewer struct {
	*Server
	to redact.Audience
}

// viewer is the view that the caller may have: who may not operate sees no
// texts of mails, no deliveries, no addresses of the network inside.
func (s *Server) viewer(c echo.Context) viewer {
	if who(c).Scopes.Has(access.Operate) {
		return viewer{s, redact.Operators}
	}
	return viewer{s, redact.Readers}
}

// public is the view of what goes to listeners of any right.
func (s *Server) public() viewer { return viewer{s, redact.Readers} }

// payload is JSON that a kind of job takes or gives.
func (v viewer) payload(jobType string, raw []byte) json.RawMessage {
	return v.mask.JSON(v.to, jobType, raw)
}

// text is what a job or a server said.
func (v viewer) text(text string) string { return redact.TextFor(v.to, text) }

// progress is how far a job is; its note is the handler's.
func (v viewer) progress(p *jobs.Progress) *jobs.Progress {
	if p == nil {
		return nil
	}
	shown := *p
	shown.Note = v.text(p.Note)
	return &shown
}

func (v viewer) lines(list []jobs.LogLine) []jobs.LogLine {
	return each(list, func(l jobs.LogLine) jobs.LogLine { return jobs.LogLine{At: l.At, Text: v.text(l.Text)} })
}

func (v viewer) reasons(list []explain.Reason) []explain.Reason {
	return each(list, func(r explain.Reason) explain.Reason {
		r.Text, r.Args = v.text(r.Text), slices.Clone(r.Args)
		for i, arg := range r.Args {
			if text, is := arg.(string); is {
				r.Args[i] = v.text(text)
			}
		}
		return r
	})
}

// mail is one of the list: what its server said may name tokens and hosts.
func (v viewer) mail(m Mail) Mail {
	m.Answer, m.Problem = v.text(m.Answer), v.text(m.Problem)
	m.Subject = v.text(m.Subject)
	m.Tries = each(m.Tries, func(t MailTry) MailTry { t.Answer = v.text(t.Answer); return t })
	m.Others = each(m.Others, v.mail)
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
	w.Secret, w.URL, w.Note = "", redact.Address(v.to, w.URL), v.text(w.Note)
	return w
}

// delivery is one sending; what was sent and answered is for operators.
func (v viewer) delivery(d Delivery) Delivery {
	d.Answer = v.text(d.Answer)
	d.Request = v.requestBody(d.Request)
	if v.to < redact.Operators {
		d.Request, d.Answer = "", ""
	}
	return d
}

// requestBody is a body that was sent; one that was cut is text.
func (v viewer) requestBody(body string) string {
	if json.Valid([]byte(body)) {
		return string(v.payload(deliveryKind, []byte(body)))
	}
	return v.text(body)
}

func (v viewer) backup(b Backup) Backup {
	b.Verdict = v.text(b.Verdict)
	return b
}

func (v viewer) sitemap(s SitemapStatus) SitemapStatus {
	s.Files = each(s.Files, same)
	s.Submissions = each(s.Submissions, func(x Submission) Submission { x.Note = v.text(x.Note); return x })
	return s
}

// clip cuts text to n bytes at most, at a rune's border, and shows that it did.
func clip(text string, n int) string { return redact.Clip(text, n) }
