package config

import "time"

// HTTP says where the API and the admin pages are, and who may use them.
type HTTP struct {
	Enabled bool   `koanf:"enabled"`
	Listen  string `koanf:"listen"`
	URL     string `koanf:"url"` // as browsers reach it, for links in mails
	// Tokens of programs, Users of people. With neither of them the listener
	// answers health checks only.
	Tokens  []Token       `koanf:"tokens"`
	Users   []User        `koanf:"users"`
	Session time.Duration `koanf:"session"`
	Secret  Secret        `koanf:"secret"`
	Proxies []string      `koanf:"proxies"` // addresses whose X-Forwarded-For is believed
	Metrics bool          `koanf:"metrics"`
	TLSCert string        `koanf:"tls_cert"`
	TLSKey  string        `koanf:"tls_key"`
	MaxBody Size          `koanf:"max_body"`
	Kinds   []string      `koanf:"kinds"` // that may be enqueued over HTTP; none named: all
}

// Token lets a program in.
type Token struct {
	Name  string   `koanf:"name"`
	Token Secret   `koanf:"token"`
	Roles []string `koanf:"roles"` // enqueue, read, operate, admin
	Kinds []string `koanf:"kinds"`
}

// User lets a person in. Password is a bcrypt hash.
type User struct {
	Name     string   `koanf:"name"`
	Password Secret   `koanf:"password"`
	Roles    []string `koanf:"roles"`
}

func defaultHTTP() HTTP {
	return HTTP{Enabled: true, Listen: "127.0.0.1:8090", Session: 12 * time.Hour, Metrics: true, MaxBody: 2 << 20}
}

func (h HTTP) check(r *report) {
	if h.Enabled && h.Listen == "" {
		r.add("http/listen", "an address is needed, for example 127.0.0.1:8090")
	}
	r.address("http/listen", h.Listen)
	r.webURL("http/url", h.URL)
	r.atLeastFor("http/session", h.Session, time.Minute)
	if (h.TLSCert == "") != (h.TLSKey == "") {
		r.add("http/tls_cert", "certificate and key are needed both, or neither")
	}
	for _, t := range h.Tokens {
		if t.Name == "" || len(t.Token) < 16 {
			r.add("http/tokens", "the token %q needs a name and at least 16 characters", t.Name)
		}
		h.checkRoles(r, "http/tokens", t.Roles)
	}
	for _, u := range h.Users {
		if u.Name == "" || u.Password == "" {
			r.add("http/users", "the user %q needs a name and a password", u.Name)
		}
		h.checkRoles(r, "http/users", u.Roles)
	}
}

func (h HTTP) checkRoles(r *report, path string, roles []string) {
	for _, role := range roles {
		r.oneOf(path, role, "enqueue", "read", "operate", "admin")
	}
}
