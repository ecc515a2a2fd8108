package mail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
)

// Drivers besides the mail services of package provider.
const (
	DriverSMTP     = "smtp"
	DriverSendmail = "sendmail"
	DriverLog      = "log"
	DriverFiles    = "files"
)

// Kinds of encryption on the way to the SMTP server.
const (
	// TLSAuto upgrades by STARTTLS where the server offers it, and insists on it
	// when a password is sent to a host that is not this one.
	TLSAuto     = "auto"
	TLSStart    = "starttls" // STARTTLS or nothing
	TLSImplicit = "tls"      // TLS from the first byte, port 465
	TLSNone     = "none"
)

// Transport is how mail is sent.
type Transport struct {
	// Driver is one of those above or of provider.Names.
	Driver string
	Host   string
	Port   int
	// Username and Password; an empty name means no authentication.
	Username string
	Password Secret
	TLS      string
	// EHLO is the name that we greet with; the machine's own when empty.
	EHLO string
	// FromName and FromAddress are the sender where a mail names none.
	FromName, FromAddress string
	// SendmailPath is a separate program configuration: one that the CMS's
	// settings name is never started.
	SendmailPath string
	// Region and Endpoint are a mail service's: see provider.Account. Its key is
	// Password, and Username what it wants besides.
	Region, Endpoint string

	// foreign says that only the CMS's settings name the host: it is reached in
	// a private network only where mail.allow_private says so.
	foreign bool
}

// Secret is a string that does not print itself.
type Secret string

// String hides it.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// GoString hides it from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides it from JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Address is host:port.
func (t Transport) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// dependency names what a circuit breaker watches, "" when nothing can be out.
func (t Transport) dependency() string {
	switch {
	case t.Driver == DriverSMTP:
		return "smtp:" + t.Address()
	case slices.Contains(provider.Names(), t.Driver):
		return t.Driver + ":" + t.Host
	}
	return ""
}

func (t Transport) account() provider.Account {
	return provider.Account{Service: t.Driver, Key: string(t.Password), User: t.Username, Region: t.Region,
		Endpoint: t.Endpoint}
}

// byService is t for a mail service whose HTTP interface is used.
func (t Transport) byService(a provider.Account) (Transport, error) {
	t.Driver, t.Username, t.Password, t.Region, t.Endpoint = a.Service, a.User, Secret(a.Key), a.Region, a.Endpoint
	t.Port, t.TLS, t.foreign = 0, "", false
	s, err := provider.New(a, nil, nil)
	if err != nil {
		return t, err
	}
	t.Host = s.Host()
	return t, nil
}

// resolveTransport reads how to send: the CMS's settings first, then its .env,
// then our own configuration (docs of Botble's MailConfigServiceProvider).
// Credentials are the exception: see credentials.
func resolveTransport(settings cms.Settings, env cms.Env, own Transport) (Transport, error) {
	pick := func(setting, variable, fallback string) string {
		return settings.String(setting, env.String(variable, fallback))
	}
	t := own
	t.EHLO = pick("email_local_domain", "MAIL_EHLO_DOMAIN", own.EHLO)
	t.FromName = pick("email_from_name", "MAIL_FROM_NAME", own.FromName)
	t.FromAddress = pick("email_from_address", "MAIL_FROM_ADDRESS", own.FromAddress)
	port := pick("email_port", "MAIL_PORT", strconv.Itoa(own.Port))
	encryption := pick("email_encryption", "MAIL_ENCRYPTION", env.String("MAIL_SCHEME", ""))
	servers := mailServers(settings, env, own)
	t.Host = pick("email_host", "MAIL_HOST", own.Host)
	t.Username, t.Password = credentials(servers)
	t.foreign = foreign(servers)
	if pick("email_driver", "MAIL_MAILER", "") == "" && slices.Contains(provider.Names(), own.Driver) {
		return t.byService(own.account())
	}
	driver := pick("email_driver", "MAIL_MAILER", own.Driver)
	if driver == "" { // the CMS's own default is sendmail; a named host says otherwise
		driver = DriverSendmail
		if t.Host != "" {
			driver = DriverSMTP
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(port))
	if err != nil || n < 0 || n > 65535 {
		return t, fmt.Errorf("the mail port %q is no port: correct it in the CMS's e-mail settings", port)
	}
	t.Port = n
	t.TLS = encryptionOf(encryption, n, own.TLS)
	return t.withDriver(driver, settings)
}

func encryptionOf(word string, port int, own string) string {
	switch strings.ToLower(word) {
	case "ssl", "smtps":
		return TLSImplicit
	case "tls", "starttls":
		if port == 465 {
			return TLSImplicit
		}
		return TLSStart
	}
	switch {
	case own != "":
		return own
	case port == 465:
		return TLSImplicit
	}
	return TLSAuto
}

// withDriver turns the CMS's word for a driver into one of ours. The mail services
// that it knows by their HTTP interfaces take the same keys by SMTP.
func (t Transport) withDriver(driver string, settings cms.Settings) (Transport, error) {
	service := func(host, user, password string) (Transport, error) {
		if password == "" {
			return t, fmt.Errorf("the CMS sends mail by %s but has no key for it: enter one in its e-mail settings",
				driver)
		}
		t.Driver, t.Host, t.Port, t.TLS = DriverSMTP, host, 587, TLSStart
		t.Username, t.Password, t.foreign = user, Secret(password), false
		return t, nil
	}
	switch driver {
	case DriverSMTP:
		return t.withPort()
	case DriverSendmail, DriverFiles:
		t.Driver, t.Host = driver, ""
		return t, nil
	case DriverLog, "array":
		t.Driver, t.Host = DriverLog, ""
		return t, nil
	case provider.Mailgun:
		return t.mailgun(settings)
	case "postmark":
		token := settings.String("email_postmark_token", "")
		return service("smtp.postmarkapp.com", token, token)
	case "sendgrid":
		return service("smtp.sendgrid.net", "apikey", settings.String("email_sendgrid_key", ""))
	case "resend":
		return service("smtp.resend.com", "resend", settings.String("email_resend_key", ""))
	case "ses":
		region := settings.String("email_ses_region", "us-east-1")
		if !sesRegion.MatchString(region) {
			return t, fmt.Errorf("the CMS's setting email_ses_region is %.60q: write a region such as us-east-1",
				region)
		}
		return service("email-smtp."+region+".amazonaws.com", settings.String("email_ses_key", ""),
			sesPassword(settings["email_ses_secret"], region))
	}
	return t, fmt.Errorf("the CMS's mail driver %q cannot be used here: choose smtp with that service's SMTP host "+
		"and password", driver)
}

// mailgun sends by Mailgun's HTTP interface with the keys of the CMS's settings.
func (t Transport) mailgun(settings cms.Settings) (Transport, error) {
	endpoint := strings.TrimPrefix(settings.String("email_mail_gun_endpoint", "api.mailgun.net"), "https://")
	if !slices.Contains([]string{"api.mailgun.net", "api.eu.mailgun.net"}, endpoint) {
		return t, fmt.Errorf("the CMS's setting email_mail_gun_endpoint is %.60q: write api.mailgun.net or "+
			"api.eu.mailgun.net", endpoint)
	}
	domain, key := settings.String("email_mail_gun_domain", ""), settings.String("email_mail_gun_secret", "")
	if domain == "" || key == "" {
		return t, errors.New("the CMS sends mail by mailgun but has no domain or no key for it: enter both in its " +
			"e-mail settings")
	}
	return t.byService(provider.Account{Service: provider.Mailgun, User: domain, Key: key,
		Endpoint: "https://" + endpoint})
}

func (t Transport) withPort() (Transport, error) {
	t.Driver = DriverSMTP
	if t.Host == "" {
		return t, fmt.Errorf("no SMTP host is set: enter one in the CMS's e-mail settings or in mail.host")
	}
	if address.CheckLine(t.Host) != nil || strings.ContainsAny(t.Host, " /\\@") {
		return t, fmt.Errorf("the SMTP host %.60q is not a host name", t.Host)
	}
	if t.Port == 0 {
		t.Port = 587
		if t.TLS == TLSImplicit {
			t.Port = 465
		}
	}
	return t, nil
}

// sesRegion is a region of Amazon: nothing that could name another host.
var sesRegion = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// sesPassword makes the SMTP password of an access key's secret (Amazon SES
// Developer Guide, "Obtaining Amazon SES SMTP credentials").
func sesPassword(secret, region string) string {
	if secret == "" {
		return ""
	}
	sum := []byte("AWS4" + secret)
	for _, message := range []string{"11111111", region, "ses", "aws4_request", "SendRawEmail"} {
		mac := hmac.New(sha256.New, sum)
		mac.Write([]byte(message))
		sum = mac.Sum(nil)
	}
	return base64.StdEncoding.EncodeToString(append([]byte{4}, sum...))
}

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
		{settings.String("email_host", ""), settings.String("email_port", ""), settings.String("email_username", ""),
			settings.String("email_password", "")},
		{env.String("MAIL_HOST", ""), env.String("MAIL_PORT", ""), env.String("MAIL_USERNAME", ""),
			env.String("MAIL_PASSWORD", "")},
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
	return !slices.ContainsFunc(servers[1:], func(s mailServer) bool {
		return s.host != "" && !settings.leadsAwayFrom(s)
	})
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
