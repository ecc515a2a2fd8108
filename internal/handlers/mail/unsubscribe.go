package mail

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/wneessen/go-mail"
)

// maxUnsubscribe bounds one address of List-Unsubscribe.
const maxUnsubscribe = 900

// unsubscribeAddresses reads https and mailto addresses, divided by blanks or
// commas, one of each at most.
func unsubscribeAddresses(text string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	for _, address := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		u, err := url.Parse(address)
		switch {
		case err != nil || len(address) > maxUnsubscribe || checkLine(address) != nil || strings.ContainsAny(address, "<>\"\\"):
			return nil, fmt.Errorf("unsubscribe: %.80q is no address", address)
		case u.Scheme == "https" && u.Host != "", u.Scheme == "mailto" && u.Opaque != "":
		default:
			return nil, fmt.Errorf("unsubscribe: %.80q is neither https://… nor mailto:…", address)
		}
		if seen[u.Scheme] {
			return nil, errors.New("unsubscribe: one https and one mailto address at most")
		}
		seen[u.Scheme] = true
		list = append(list, address)
	}
	return list, nil
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
