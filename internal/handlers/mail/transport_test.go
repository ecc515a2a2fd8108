package mail

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

func TestTheCMSsSettingsWinOverItsEnvOverOurs(t *testing.T) {
	own := Transport{Driver: DriverSMTP, Host: "ours.example", Port: 2525, Username: "ours", Password: "p0",
		FromAddress: "ours@example.com", SendmailPath: "/usr/sbin/sendmail"}
	for name, c := range map[string]struct {
		settings cms.Settings
		env      cms.Env
		want     Transport
	}{
		"ours": {nil, nil, Transport{Driver: "smtp", Host: "ours.example", Port: 2525, Username: "ours", TLS: TLSAuto,
			FromAddress: "ours@example.com"}},
		"env": {nil, cms.Env{"MAIL_HOST": "env.example", "MAIL_PORT": "465", "MAIL_USERNAME": "e",
			"MAIL_PASSWORD": "p1", "MAIL_FROM_ADDRESS": "env@example.com", "MAIL_FROM_NAME": "Env",
			"MAIL_EHLO_DOMAIN": "me.example"},
			Transport{Driver: "smtp", Host: "env.example", Port: 465, Username: "e", TLS: TLSImplicit,
				FromAddress: "env@example.com", FromName: "Env", EHLO: "me.example"}},
		"settings": {cms.Settings{"email_driver": "smtp", "email_host": "cms.example", "email_port": "587",
			"email_encryption": "tls", "email_local_domain": "x.example"},
			cms.Env{"MAIL_HOST": "env.example", "MAIL_MAILER": "log"},
			Transport{Driver: "smtp", Host: "cms.example", Port: 587, TLS: TLSStart, FromAddress: "ours@example.com",
				EHLO: "x.example", foreign: true}},
		"ssl": {cms.Settings{"email_encryption": "ssl"}, nil,
			Transport{Driver: "smtp", Host: "ours.example", Port: 2525, Username: "ours", TLS: TLSImplicit,
				FromAddress: "ours@example.com"}},
		"a log": {cms.Settings{"email_driver": "log"}, nil,
			Transport{Driver: "log", Port: 2525, Username: "ours", TLS: TLSAuto, FromAddress: "ours@example.com"}},
		"an array": {cms.Settings{"email_driver": "array"}, nil,
			Transport{Driver: "log", Port: 2525, Username: "ours", TLS: TLSAuto, FromAddress: "ours@example.com"}},
		"postmark": {cms.Settings{"email_driver": "postmark", "email_postmark_token": "t"}, nil,
			Transport{Driver: "smtp", Host: "smtp.postmarkapp.com", Port: 587, Username: "t", TLS: TLSStart,
				FromAddress: "ours@example.com"}},
		"sendgrid": {cms.Settings{"email_driver": "sendgrid", "email_sendgrid_key": "k"}, nil,
			Transport{Driver: "smtp", Host: "smtp.sendgrid.net", Port: 587, Username: "apikey", TLS: TLSStart,
				FromAddress: "ours@example.com"}},
		"a sendmail of the CMS's": {cms.Settings{"email_driver": "sendmail", "email_sendmail_path": "/tmp/evil -t"},
			nil, Transport{Driver: "sendmail", Port: 2525, Username: "ours", TLS: TLSAuto,
				FromAddress: "ours@example.com"}},
	} {
		got, err := resolveTransport(c.settings, c.env, own)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.want.SendmailPath = "/usr/sbin/sendmail"
		got.Password = ""
		if got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
	if got, err := resolveTransport(cms.Settings{}, cms.Env{}, Transport{}); err != nil ||
		got.Driver != DriverSendmail {
		t.Errorf("nothing is set: %+v, %v", got, err)
	}
	for _, bad := range []cms.Settings{{"email_driver": "mailgun"}, {"email_driver": "postmark"},
		{"email_port": "many"}, {"email_port": "70000"}, {"email_driver": "smtp", "email_host": "a b"},
		{"email_host": "a\r\nb"}} {
		if got, err := resolveTransport(bad, nil, own); err == nil {
			t.Errorf("%v is taken as %+v", bad, got)
		}
	}
	if _, err := resolveTransport(cms.Settings{"email_driver": "smtp"}, nil, Transport{}); err == nil ||
		!strings.Contains(err.Error(), "mail.host") {
		t.Errorf("no host: %v", err)
	}
}

// Who may write the CMS's settings gets no password of its .env or of ours.
func TestCredentialsBelongToTheHostThatTheirSourceNames(t *testing.T) {
	own := Transport{Driver: DriverSMTP, Host: "ours.example", Port: 587, Username: "ours", Password: "p0"}
	env := cms.Env{"MAIL_HOST": "env.example", "MAIL_PORT": "465", "MAIL_USERNAME": "e", "MAIL_PASSWORD": "p1"}
	for name, c := range map[string]struct {
		settings       cms.Settings
		env            cms.Env
		own            Transport
		user, password string
		foreign        bool
	}{
		"ours":         {nil, nil, own, "ours", "p0", false},
		"the .env's":   {nil, env, own, "e", "p1", false},
		"another host": {cms.Settings{"email_host": "evil.example"}, env, own, "", "", true},
		"another host, a user's name": {cms.Settings{"email_host": "evil.example", "email_username": "e"}, env,
			own, "e", "", true},
		"another port of the host": {cms.Settings{"email_host": "env.example", "email_port": "9999"}, env,
			own, "", "", true},
		"another port": {cms.Settings{"email_port": "9999"}, nil, own, "", "", true},
		"the same host": {cms.Settings{"email_host": "ENV.example.", "email_port": "465"}, env,
			own, "e", "p1", false},
		"our host": {cms.Settings{"email_host": "ours.example", "email_port": "587"}, nil,
			own, "ours", "p0", false},
		"our host, though the .env has its": {cms.Settings{"email_host": "ours.example"}, env, own, "", "", false},
		"its own": {
			cms.Settings{"email_host": "cms.example", "email_username": "c", "email_password": "p2"}, env, own, "c",
			"p2", true},
		"its own user, the .env's password": {cms.Settings{"email_username": "e"}, env, own, "e", "p1", false},
		"another user, no password for it":  {cms.Settings{"email_username": "x"}, env, own, "x", "", false},
		"the .env's host with our password": {nil, cms.Env{"MAIL_HOST": "env.example"}, own, "", "", false},
		"a port, where the .env has none": {cms.Settings{"email_port": "9999"},
			cms.Env{"MAIL_HOST": "env.example", "MAIL_PASSWORD": "p1", "MAIL_USERNAME": "e"}, Transport{}, "", "",
			true},
		"a mail port, where there is none": {cms.Settings{"email_port": "465"},
			cms.Env{"MAIL_HOST": "env.example", "MAIL_PASSWORD": "p1", "MAIL_USERNAME": "e"}, Transport{}, "e", "p1",
			false},
		"localhost is the same as 127.0.0.1": {cms.Settings{"email_host": "localhost"}, nil,
			Transport{Host: "127.0.0.1", Port: 25, Username: "l", Password: "p3"}, "l", "p3", false},
	} {
		got, err := resolveTransport(c.settings, c.env, c.own)
		if err != nil || got.Username != c.user || string(got.Password) != c.password || got.foreign != c.foreign {
			t.Errorf("%s: %q %q foreign %v (%v), want %q %q %v", name, got.Username, string(got.Password), got.foreign,
				err, c.user, c.password, c.foreign)
		}
	}
	if _, err := resolveTransport(cms.Settings{"email_driver": "ses", "email_ses_secret": "s",
		"email_ses_region": "evil.example/"}, nil, own); err == nil {
		t.Error("a region names another host")
	}
}

// The value is what the Python program in Amazon's SES guide prints for the
// secret of its examples.
func TestSESPassword(t *testing.T) {
	got := sesPassword("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
	if want := "BLBM/9hSUELfq8Gw+rU1YcBjkOxGbhT2XG763xVLGWL9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAPasswordIsNeverPrinted(t *testing.T) {
	tr := Transport{Host: "h", Password: "hunter2"}
	raw, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(tr), fmt.Sprintf("%+v", tr), fmt.Sprintf("%#v", tr), string(raw)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("it stands in %s", text)
		}
	}
}
