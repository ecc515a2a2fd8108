package mail

import (
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Register adds mail.send and its alias, and mail.bounces where there is a
// mailbox to read.
func (h *Handler) Register(r *jobs.Registry) {
	if h.c.Mailbox.Host != "" {
		jobs.Handle(r, ReadBounces, h.readBounces)
	}
	jobs.Handle(r, Send, h.send)
	jobs.Restrict(r, Send, jobs.Restriction[SendPayload]{Refuse: h.refuse})
	r.Alias("email.send", Send.Name)
}
