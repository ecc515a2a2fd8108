package mail

import (
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// cmsLog is the letter as the CMS's mail log plugin writes it.
func (l letter) cmsLog(g group, at time.Time) cms.EmailLog {
	e := cms.EmailLog{From: l.from.String(), To: joined(g.to), CC: joined(g.cc), Subject: l.content.Subject,
		HTML: l.content.HTML, Text: l.content.Text, Debug: "sent by cmsjobs, Message-ID <" + l.messageID(g) + ">", At: at}
	if !l.separate {
		e.BCC = joined(l.bcc)
	}
	return e
}

func joined(list []Address) string {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}
