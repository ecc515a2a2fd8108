package config

import (
	"net/netip"
	"time"
)

// Mail says how mail is sent. The CMS's own settings win over it: an
// administrator's change there is seen by the next job.
type Mail struct {
	Driver     string        `koanf:"driver"` // smtp, sendmail, log, files, postmark, mailgun, brevo, ses
	Host       string        `koanf:"host"`
	Port       int           `koanf:"port"`
	Username   string        `koanf:"username"`
	Password   Secret        `koanf:"password"`
	Encryption string        `koanf:"encryption"` // auto, starttls, tls, none
	Verify     bool          `koanf:"verify"`
	Region     string        `koanf:"region"`   // of ses
	Endpoint   string        `koanf:"endpoint"` // of a mail service; "" is its own
	EHLO       string        `koanf:"ehlo"`
	From       string        `koanf:"from"`
	FromName   string        `koanf:"from_name"`
	Admin      []string      `koanf:"admin"`
	Templates  string        `koanf:"templates"`
	Dir        string        `koanf:"dir"` // of the files driver
	Roots      []string      `koanf:"roots"`
	Sendmail   string        `koanf:"sendmail"`
	Timeout    time.Duration `koanf:"timeout"`
	Rate       MailRate      `koanf:"rate"`
	MaxSize    Size          `koanf:"max_size"`
	KeepBody   bool          `koanf:"keep_body"`
	CMSLog     bool          `koanf:"cms_log"`
	Resend     bool          `koanf:"resend_unknown"`
	DKIM       DKIM          `koanf:"dkim"`
	Bounce     Secret        `koanf:"bounce_secret"`
	Mailbox    Mailbox       `koanf:"mailbox"`
	Suppress   time.Duration `koanf:"suppress_for"` // after a hard bounce
	// MaxAge by template; 0 sends however old. Templates that are not named keep
	// the mail handler's own.
	MaxAge map[string]time.Duration `koanf:"max_age"`
	// Pin keeps to this section whatever the CMS says.
	Pin          bool     `koanf:"pin"`
	AllowPrivate []string `koanf:"allow_private"`
	OneRecipient bool     `koanf:"one_recipient"`
}

// MailRate bounds what all workers together send; 0 is no bound.
type MailRate struct {
	PerSecond int `koanf:"per_second"`
	PerMinute int `koanf:"per_minute"`
	PerHour   int `koanf:"per_hour"`
	PerDay    int `koanf:"per_day"`
	PerDomain int `koanf:"per_domain"` // a minute
	// Domains that have another number a minute than PerDomain.
	Domains map[string]int `koanf:"domains"`
}

// Mailbox is where reports of mail that came back arrive; no host is none.
type Mailbox struct {
	Host       string `koanf:"host"`
	Port       int    `koanf:"port"`
	Username   string `koanf:"username"`
	Password   Secret `koanf:"password"`
	Encryption string `koanf:"encryption"` // tls, starttls, none
	Folder     string `koanf:"folder"`
	MoveTo     string `koanf:"move_to"`
}

// DKIM signs mail; no domain means no signature.
type DKIM struct {
	Domain   string `koanf:"domain"`
	Selector string `koanf:"selector"`
	KeyFile  string `koanf:"key_file"`
}

func defaultMail() Mail {
	return Mail{Driver: "smtp", Host: "127.0.0.1", Port: 25, Encryption: "auto", Verify: true,
		Sendmail: "/usr/sbin/sendmail",
		Timeout:  30 * time.Second, Rate: MailRate{PerMinute: 60, Domains: map[string]int{}}, MaxSize: 25 << 20,
		Mailbox: Mailbox{Encryption: "tls", Folder: "INBOX"}, Suppress: 30 * day, MaxAge: map[string]time.Duration{}}
}

// Networks are AllowPrivate as values; the configuration was checked.
func (m Mail) Networks() []netip.Prefix { return networks(m.AllowPrivate) }

func (m Mail) check(r *report) {
	r.oneOf("mail/driver", m.Driver, "smtp", "sendmail", "log", "files", "postmark", "mailgun", "brevo",
		"ses")
	r.oneOf("mail/encryption", m.Encryption, "auto", "starttls", "tls", "none")
	r.between("mail/port", m.Port, 1, 65535)
	r.atLeastFor("mail/timeout", m.Timeout, time.Second)
	if m.Driver == "files" && m.Dir == "" {
		r.add("mail/dir", "the driver files needs a folder to put mails into")
	}
	m.checkService(r)
	if m.DKIM.Domain != "" && (m.DKIM.Selector == "" || m.DKIM.KeyFile == "") {
		r.add("mail/dkim/domain", "selector and key_file are needed besides")
	}
	for path, n := range map[string]int{"per_second": m.Rate.PerSecond, "per_minute": m.Rate.PerMinute,
		"per_hour": m.Rate.PerHour, "per_day": m.Rate.PerDay, "per_domain": m.Rate.PerDomain} {
		r.atLeast("mail/rate/"+path, n, 0)
	}
	for domain, n := range m.Rate.Domains {
		r.atLeast("mail/rate/domains/"+domain, n, 0)
	}
	r.oneOf("mail/mailbox/encryption", m.Mailbox.Encryption, "tls", "starttls", "none")
	r.between("mail/mailbox/port", m.Mailbox.Port, 0, 65535)
	if m.Mailbox.Host != "" && (m.Mailbox.Username == "" || m.Mailbox.Password == "") {
		r.add("mail/mailbox/host", "username and password are needed besides")
	}
	r.atLeastFor("mail/suppress_for", m.Suppress, time.Hour)
	r.networks("mail/allow_private", m.AllowPrivate)
	for template, age := range m.MaxAge {
		r.atLeastFor("mail/max_age/"+template, age, 0)
	}
}

// checkService says what a mail service needs.
func (m Mail) checkService(r *report) {
	needs := map[string]string{"postmark": "", "brevo": "", "mailgun": "the domain that mails are sent from",
		"ses": "the id of an access key"}
	user, service := needs[m.Driver]
	if m.Endpoint != "" {
		r.webURL("mail/endpoint", m.Endpoint)
	}
	if !service {
		return
	}
	if m.Password == "" {
		r.add("mail/password", "the driver %s needs a key", m.Driver)
	}
	if user != "" && m.Username == "" {
		r.add("mail/username", "the driver %s needs %s", m.Driver, user)
	}
	if m.Driver == "ses" && m.Region == "" {
		r.add("mail/region", "the driver ses needs a region such as eu-west-1")
	}
}
