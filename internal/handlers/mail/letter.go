package mail

import (
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
)

// letter is a mail before it is known which server gets it: all texts
// rendered, all addresses checked, all attachments read.
type letter struct {
	uuid        string
	from        address.Address
	to, cc, bcc []address.Address
	replyTo     []address.Address
	content     template.Content
	files       []file
	separate    bool
	dkim        *dkim.Key
	unsubscribe []string // addresses of List-Unsubscribe
}

// group is the recipients that get one and the same message.
type group struct {
	id         string // "" for all, else the one recipient's key
	to, cc     []address.Address
	recipients []address.Address // all of the envelope
}

// groups says who gets which message, each recipient once.
func (l letter) groups() []group {
	seen := map[string]bool{}
	once := func(list []address.Address) (fresh []address.Address) {
		for _, a := range list {
			if !seen[a.Key()] {
				seen[a.Key()] = true
				fresh = append(fresh, a)
			}
		}
		return fresh
	}
	if !l.separate {
		to, cc, bcc := once(l.to), once(l.cc), once(l.bcc)
		return []group{{to: to, cc: cc, recipients: append(append(append([]address.Address{}, to...), cc...), bcc...)}}
	}
	var groups []group
	for _, a := range once(append(append(append([]address.Address{}, l.to...), l.cc...), l.bcc...)) {
		groups = append(groups, group{id: a.Key(), to: []address.Address{a}, recipients: []address.Address{a}})
	}
	return groups
}

// messageID is the same for every copy of a group's message.
func (l letter) messageID(g group) string {
	return stableID(l.uuid, g.id) + "@" + l.from.Domain()
}

// cmsLog is the letter as the CMS's mail log plugin writes it.
func (l letter) cmsLog(g group, at time.Time) cms.EmailLog {
	e := cms.EmailLog{From: l.from.String(), To: joined(g.to), CC: joined(g.cc), Subject: l.content.Subject,
		HTML: l.content.HTML, Text: l.content.Text, Debug: "sent by cmsjobs, Message-ID <" + l.messageID(g) + ">",
		At: at}
	if !l.separate {
		e.BCC = joined(l.bcc)
	}
	return e
}

func joined(list []address.Address) string {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}

// unsubscribeHeaders let mail programs show a button (RFC 2369). An https
// address takes a POST without a question to the reader (RFC 8058).
func (l letter) unsubscribeHeaders(m *mail.Msg) {
	if len(l.unsubscribe) == 0 {
		return
	}
	m.SetGenHeaderPreformatted("List-Unsubscribe", "<"+strings.Join(l.unsubscribe, ">,\r\n <")+">")
	for _, address := range l.unsubscribe {
		if strings.HasPrefix(address, "https:") {
			m.SetGenHeaderPreformatted("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
		}
	}
}
