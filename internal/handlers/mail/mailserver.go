package mail

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// mailServer is what one source says about the SMTP server; empty fields are
// not named there.
type mailServer struct{ host, port, username, password string }

// mailServers lists the sources, the strongest first: the CMS's settings, its
// .env, our own configuration. Who may write one of them need not be trusted
// with the secrets of a later one.
func mailServers(settings cms.Settings, env cms.Env, own Transport) []mailServer {
	ours := mailServer{host: own.Host, username: own.Username, password: string(own.Password)}
	if own.Port != 0 {
		ours.port = strconv.Itoa(own.Port)
	}
	return []mailServer{
		{settings.String("email_host", ""), settings.String("email_port", ""), settings.String("email_username", ""), settings.String("email_password", "")},
		{env.String("MAIL_HOST", ""), env.String("MAIL_PORT", ""), env.String("MAIL_USERNAME", ""), env.String("MAIL_PASSWORD", "")},
		ours,
	}
}

// credentials chooses the user name and the password. Those of a source are
// used only while no stronger source names another host or port: else anyone
// who may write the CMS's settings could have our password sent to a server of
// their choice.
func credentials(servers []mailServer) (username string, password Secret) {
	for i, s := range servers {
		if slices.ContainsFunc(servers[:i], func(stronger mailServer) bool { return stronger.leadsAwayFrom(s) }) {
			continue
		}
		if username == "" {
			username = s.username
		}
		if password == "" && (s.username == "" || s.username == username) {
			password = Secret(s.password)
		}
	}
	return username, password
}

// foreign says that the settings name a host that neither the .env nor our own
// configuration names: those are written by the owner of the machine.
func foreign(servers []mailServer) bool {
	settings := servers[0]
	if settings.host == "" && settings.port == "" {
		return false
	}
	return !slices.ContainsFunc(servers[1:], func(s mailServer) bool { return s.host != "" && !settings.leadsAwayFrom(s) })
}

// leadsAwayFrom says that a host or port named by s is not that of weaker.
func (s mailServer) leadsAwayFrom(weaker mailServer) bool {
	if s.host != "" && hostName(s.host) != hostName(weaker.host) {
		return true
	}
	if s.port == "" || s.port == weaker.port {
		return false
	}
	return weaker.port != "" || !slices.Contains([]string{"25", "465", "587"}, s.port)
}

// hostName makes spellings of one host equal.
func hostName(host string) string {
	host = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(host)), ".")
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}
