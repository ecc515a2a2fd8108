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

// clip cuts text to n bytes at most, at a rune's border, and shows that it did.
func clip(text string, n int) string { return redact.Clip(text, n) }
