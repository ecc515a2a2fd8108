package config

import (
	"net"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// HTTP says where the API and the admin pages are, and who may use them.
type HTTP struct {
	Enabled bool   `koanf:"enabled"`
	API     bool   `koanf:"api"` // false: health and metrics only
	Listen  string `koanf:"listen"`
	URL     string `koanf:"url"` // as browsers reach it, for links in mails
	// AdminUser and AdminPassword are one account in the simplest form; Users
	// are more of them. Programs get tokens by "cmsjobs token create".
	AdminUser     string `koanf:"admin_user"`
	AdminPassword Secret `koanf:"admin_password"`
	Users         []User `koanf:"users"`
	// CMSAccounts lets the CMS's own administrators sign in: its super users,
	// and who has a permission that Permissions gives a role.
	CMSAccounts bool              `koanf:"cms_accounts"`
	Permissions map[string]string `koanf:"permissions"`
	// EnqueueRule and ManageRule open routes beyond the tokens.
	EnqueueRule string   `koanf:"enqueue_rule"`
	ManageRule  string   `koanf:"manage_rule"`
	Types       []string `koanf:"allowed_types"` // that may be enqueued over HTTP; none named: all
	Proxies     []string `koanf:"proxies"`       // addresses whose X-Forwarded-For is believed
	Origins     []string `koanf:"origins"`       // other sites whose pages may read answers (CORS)
	Mask        []string `koanf:"mask"`          // further payload paths that are hidden
	Metrics     bool     `koanf:"public_metrics"`
	TLSCert     string   `koanf:"tls_cert"`
	TLSKey      string   `koanf:"tls_key"`
	MaxBody     Size     `koanf:"max_body"`
	Rate        int      `koanf:"rate"` // requests a second of one caller; 0 is any number
}

// User is an account of the admin page and of Basic authentication. Password is
// the word itself or a bcrypt hash of it.
type User struct {
	Name     string `koanf:"name"`
	Password Secret `koanf:"password"`
	Role     string `koanf:"role"` // viewer, operator, admin
}

func defaultHTTP() HTTP {
	return HTTP{Enabled: true, API: true, Listen: "127.0.0.1:8090", AdminUser: "admin", CMSAccounts: true,
		Permissions: map[string]string{}, MaxBody: 2 << 20, Rate: 100}
}

// Networks are Proxies as values; the configuration was checked.
func (h HTTP) Networks() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range h.Proxies {
		if p, err := proxy(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// proxy reads a network or a single address.
func proxy(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

func (h HTTP) check(r *report) {
	if h.Enabled && h.Listen == "" {
		r.add("http/listen", "an address is needed, for example 127.0.0.1:8090")
	}
	r.address("http/listen", h.Listen)
	r.webURL("http/url", h.URL)
	if (h.TLSCert == "") != (h.TLSKey == "") {
		r.add("http/tls_cert", "certificate and key are needed both, or neither")
	}
	r.atLeast("http/rate", h.Rate, 0)
	for _, text := range h.Proxies {
		if _, err := proxy(text); err != nil {
			r.add("http/proxies", "%q is neither an address nor a network", text)
		}
	}
	h.checkPasswords(r)
	for _, u := range h.Users {
		if u.Name == "" || u.Password == "" {
			r.add("http/users", "the user %q needs a name and a password", u.Name)
		}
		r.oneOf("http/users", u.Role, "viewer", "operator", "admin")
	}
	for permission, role := range h.Permissions {
		r.oneOf("http/permissions/"+permission, role, "viewer", "operator", "admin")
	}
}

// minPassword is how many characters a password of the configuration has at
// least where others than this machine can reach the page.
const minPassword = 12

// checkPasswords refuses short passwords, unless only this machine can try
// them: the demo's is "demo".
func (h HTTP) checkPasswords(r *report) {
	if !h.Enabled || h.loopback() && len(h.Proxies) == 0 {
		return
	}
	short := func(password Secret) bool {
		return password != "" && utf8.RuneCountInString(password.Reveal()) < minPassword
	}
	const fix = "has less than %d characters, and the page is open to others than this machine: take a longer one"
	if short(h.AdminPassword) {
		r.add("http/admin_password", fix, minPassword)
	}
	for _, u := range h.Users {
		if short(u.Password) {
			r.add("http/users", "the password of %q "+fix, u.Name, minPassword)
		}
	}
}

// loopback says whether only this machine reaches the page.
func (h HTTP) loopback() bool {
	host, _, err := net.SplitHostPort(h.Listen)
	if err != nil {
		return false
	}
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// WeakPassword says that the administrator's password is short, though allowed
// because only this machine reaches the page: a proxy may be put in front of it
// unnamed.
func (h HTTP) WeakPassword() bool {
	return h.AdminPassword != "" && utf8.RuneCountInString(h.AdminPassword.Reveal()) < minPassword
}
