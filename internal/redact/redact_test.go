package redact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/redact"
)

const planted = "S3CRETvalue99"

func TestSecretsInTextAreHidden(t *testing.T) {
	for _, text := range []string{
		"password=" + planted, "Password: " + planted, `{"db_password": "` + planted + `"}`, `\"password\":\"` +
			planted + `\"`, "pwd=" + planted + ";", "SMTP_PASS=" + planted, "pass=" + planted,
		"mysql://root:" + planted + "@db:3306/cms", "mysql://root:a/" + planted + "@db/cms", "mysql://root:x@" +
			planted + "@db/cms", "https://" + planted + "@example.com/repo.git", "redis://:" + planted + "@127.0.0.1/0",
		"root:" + planted + "@tcp(127.0.0.1:3306)/cms", "postgres://u:" + planted + "@h/db?sslmode=disable",
		"host=db user=u password=" + planted + " dbname=x", "password='" + planted + " with spaces'",
		"https://x.example/a?token=" + planted + "&b=1", "https://x.example/a?b=1&signature=" + planted,
		"GET /x?api_key=" + planted, "https://x.example/?key=" + planted, "?X-Amz-Signature=" + planted,
		"https://x.example/?reset_token=" + planted + "#x",
		"Authorization: Bearer " + planted, "authorization: Basic dXNlcjpTM0NSRVR2YWx1ZTk5 " + planted,
		"sent Bearer " + planted, "Cookie: a=b; session=" + planted, "Set-Cookie: s=" + planted + "; HttpOnly",
		"X-Api-Key: " + planted,
		"https://shop.example/password/reset/" + planted + "?email=a@b", "https://shop.example/verify/0123456789" +
			planted, "https://hooks.slack.com/services/T0/B0/" + planted, "https://discord.com/api/webhooks/1/" +
			planted,
		"https://api.telegram.org/bot123:" + planted + "/sendMessage", "whsec_" + planted, "cmsj_" + planted,
		"eyJhbGciOiJIUzI1NiJ9." + planted + "abc.x", "sk_live_" + planted, "ghp_0123456789" + planted,
		"xoxb-1-" + planted, "base64:" + planted + "0123456789ABCDEFGH=", "-----BEGIN RSA PRIVATE KEY-----\n" +
			planted + "\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n" + planted,
		`s:8:"password";s:13:"` + planted + `"`, "cvv=" + planted, "'client_secret' => '" + planted + "'",
		"data[password]=" + planted, "user.token: " + planted, "dsn=" + planted, "mật_khẩu=1 secretKey=" + planted,
	} {
		got := redact.Text("before " + text + " after")
		if strings.Contains(got, planted) || !strings.Contains(got, redact.Mask) || !strings.HasPrefix(got, "before ") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	for _, text := range []string{
		"", "550 no such user jo@example.com", "dial tcp: lookup mail.example.com: no such host",
		"invalid character 'x' looking for beginning of value",
		"https://medium.com/@jo/a-story", "https://example.com/sitemap.xml?page=2&sort=date",
		"Access denied for user 'cms'@'localhost' (using password: YES)",
		"the token is missing", "a token: missing", "Basic authentication is needed",
		"sent to jo@example.com at 10:30", "C:\\sites\\cms: access denied", "2026-11-22T00:10:00Z: done",
		"max_tokens=100",
		"http://127.0.0.1:8090/admin", "map[string]int: 7", "ssh: handshake failed", "Ünïcödé – ✓ 中文", "•••",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestReadersDoNotLearnTheNetworkInside(t *testing.T) {
	for text, want := range map[string]string{
		"dial tcp 10.1.2.3:25: connection refused":    "dial tcp (internal address):25: connection refused",
		"dial tcp [fd00::1]:443: i/o timeout":         "dial tcp (internal address):443: i/o timeout",
		"the address ::1 is not public":               "the address (internal address) is not public",
		"dial tcp 192.168.0.7:80 and 100.64.3.3":      "dial tcp (internal address):80 and (internal address)",
		"dial tcp 93.184.216.34:80: refused":          "dial tcp 93.184.216.34:80: refused",
		"version 1.2.3 at 12:30:45, 2026-01-01 1:2:3": "version 1.2.3 at 12:30:45, 2026-01-01 1:2:3",
		"[::ffff:127.0.0.1]:9 refused":                "(internal address):9 refused",
	} {
		if got := redact.TextFor(redact.Readers, text); got != want {
			t.Errorf("%q became %q", text, got)
		}
		if got := redact.TextFor(redact.Operators, text); got != text {
			t.Errorf("an operator sees %q as %q", text, got)
		}
	}
	if got := redact.Address(redact.Readers, "https://hook.example/T0/"+planted+
		"?x=y"); got != "https://hook.example/"+redact.Mask {
		t.Error(got)
	}
	if got := redact.Address(redact.Operators, "https://hook.example/T0/x?token="+
		planted); got != "https://hook.example/T0/x?token="+redact.Mask {
		t.Error(got)
	}
}

func TestKeysThatAreSecret(t *testing.T) {
	for _, key := range []string{"password", "Passwort", "db_pass", "userPwd", "pwd", "API-KEY", "apiKey", "x_api_key",
		"Authorization", "accessToken", "refresh_token", "client_secret", "cookie", "sessionId",
		"cvv", "cvc2", "cardNumber", "signature", "sig", "pin", "otp", "dsn", "connection_string", "private_key",
		"bearer", "confirm", "csrf", "jwt", "reset_link", "smtpPass", "PASS"} {
		if !redact.SecretKey(key) {
			t.Errorf("%s is not secret", key)
		}
	}
	for _, key := range []string{"to", "subject", "passenger", "compass", "spinner", "opinion", "title", "signatory",
		"design", "keyword", "key", "max_tokens", "author", "authority", "path", "topic", "pinned", "bypass",
		"robots"} {
		if redact.SecretKey(key) {
			t.Errorf("%s is secret", key)
		}
	}
}

func TestJSONHidesByKeysPathsAndShapes(t *testing.T) {
	rules, err := redact.NewRules([]string{"cache.clear:note", "card.*.number"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to              redact.Audience
		kind, raw, want string
	}{
		{redact.Operators, "x", `{"password":"p","id":12345678901234567890,"nested":[{"apiKey":{"a":1}}],"ok":true}`,
			`{"id":12345678901234567890,"nested":[{"apiKey":"•••"}],"ok":true,"password":"•••"}`},
		{redact.Operators, "x", `{"url":"https://u:p@h/?token=t","password":null,"token":"","secret":false}`,
			`{"password":null,"secret":false,"token":"","url":"https://•••@h/?token=•••"}`},
		{redact.Operators, "cache.clear", `{"note":"n","card":[{"number":1}]}`,
			`{"card":[{"number":"•••"}],"note":"•••"}`},
		{redact.Operators, "mail.send", `{"to":"a@b","body":"hello"}`, `{"body":"hello","to":"a@b"}`},
		{redact.Readers, "mail.send", `{"to":"a@b","body":"hello","data":{"link":"x"},"subject":"s"}`,
			`{"body":"•••","data":"•••","subject":"s","to":"a@b"}`},
		{redact.Readers, "mail.send", `{"body":"hello`, `"(no JSON)"`},
		{redact.Operators, "x", `{"password":"` + planted + `"`, `"(no JSON) {\"password\":\"•••\""`},
		{redact.Readers, "x", ``, `{}`},
	} {
		if got := string(rules.JSON(c.to, c.kind, []byte(c.raw))); got != c.want {
			t.Errorf("%s for %v:\n%s\nwant\n%s", c.raw, c.to, got, c.want)
		}
	}
	if _, err := redact.NewRules([]string{"a..b"}, nil); err == nil {
		t.Error("a path without a key is taken")
	}
}

// FuzzText puts a secret between any two texts.
func FuzzText(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"https://a:b@", "@c"}, {`{"a":"`, `"}`}, {"password=", ""},
		{"-----BEGIN PRIVATE KEY-----", "\xff"}, {"Cookie: ", "\n"}, {"\\\"", "\\"}, {"10.0.0.1", "[::1]"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, planted) || len(before)+len(after) > 1<<16 {
			return
		}
		for _, secret := range []string{" https://u:" + planted + "@h/?token=" + planted + " ", "\npassword=" +
			planted + "\n", " Bearer " + planted + " "} {
			for _, to := range []redact.Audience{redact.Readers, redact.Operators} {
				got := redact.TextFor(to, before+secret+after)
				if strings.Contains(got, planted) || !utf8.ValidString(got) {
					t.Errorf("%q became %q", before+secret+after, got)
				}
			}
		}
	})
}

// FuzzJSON takes any bytes as a payload.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"password":"x","a":[{"token":1}]}`))
	f.Add([]byte("{\"a\":\"\xff\"}"))
	f.Add([]byte(`{"a":`))
	rules, err := redact.NewRules(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		shown := rules.JSON(redact.Readers, "mail.send", raw)
		if !json.Valid(shown) {
			t.Errorf("%q became %q", raw, shown)
		}
	})
}

// BenchmarkText is a payload of the largest size, made to be slow to read.
func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{"pairs": strings.Repeat(`a:"`, 1<<18),
		"secrets": strings.Repeat(`token="`, 1<<17), "plain": strings.Repeat("hello world ", 1<<16),
		"addresses": strings.Repeat("://a:b", 1<<17)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				redact.TextFor(redact.Readers, text)
			}
		})
	}
}
