package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"crypto/sha256"
	"encoding/hex"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

const key = "a-key-that-nobody-sees"

// message is a mail with everything that a service must know.
const message = "From: =?utf-8?q?J=C3=B6rg?= <shop@example.org>\r\nTo: \"A, Ann\" <ann@example.com>\r\n" +
	"Cc: ben@example.com, gone@example.com\r\nReply-To: help@example.org\r\n" +
	"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <id@example.org>\r\nList-Unsubscribe: <https://example.org/u>\r\n" +
	"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n" +
	"--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n" +
	"--a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nH=C3=A9\r\n" +
	"--a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>H&eacute;</p>\r\n--a--\r\n" +
	"--m\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"b.pdf\"\r\n" +
	"Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n" +
	"--m\r\nContent-Type: image/png; name=\"l.png\"\r\nContent-Disposition: inline\r\nContent-ID: <logo>\r\n" +
	"Content-Transfer-Encoding: base64\r\n\r\niVBO\r\n--m--\r\n"

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var recipients = []string{"ann@example.com", "ben@example.com", "hidden@example.com"}

// sender hands mails of a service to serve.
func sender(t *testing.T, service string, serve http.HandlerFunc) *provider.Sender {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	client := outbound.New(outbound.Options{AllowHTTP: true, Timeout: 10 * time.Second,
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(client.CloseIdleConnections)
	s, err := provider.New(provider.Account{Service: service, Key: key, User: "mg.example.org", Region: "eu-west-1",
		Endpoint: server.URL}, client, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(t *testing.T, s *provider.Sender) (string, error) {
	t.Helper()
	return s.Send(t.Context(), provider.Mail{From: "shop@example.org", Recipients: recipients, Text: []byte(message),
		ID: "id@example.org"})
}

// asked is what a service was sent; its answer is the text of a success.
func asked(t *testing.T, service, answer string) (r *http.Request, body string) {
	t.Helper()
	s := sender(t, service, func(w http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r, body = q, string(text)
		_, _ = io.WriteString(w, answer)
	})
	if id, err := send(t, s); err != nil || id != "theirs" {
		t.Fatalf("taken as %q, %v", id, err)
	}
	return r, body
}

func equalJSON(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &a); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("sent was\n%s\nwant\n%s", got, want)
	}
}

// Postmark and Brevo get the parts: the people of the envelope, of whom the header
// names some, each text, each file.
func TestPostmark(t *testing.T) {
	r, body := asked(t, provider.Postmark, `{"ErrorCode":0,"Message":"OK","MessageID":"theirs"}`)
	if r.URL.Path != "/email" || r.Header.Get("X-Postmark-Server-Token") != key {
		t.Errorf("%s with %v", r.URL, r.Header)
	}
	equalJSON(t, body, `{"From":"=?utf-8?q?J=C3=B6rg?= <shop@example.org>","To":"\"A, Ann\" <ann@example.com>",
		"Cc":"ben@example.com","Bcc":"hidden@example.com","ReplyTo":"help@example.org","Subject":"Grüße",
		"TextBody":"Hé","HtmlBody":"<p>H&eacute;</p>","Metadata":{"message_id":"id@example.org"},
		"Headers":[{"Name":"X-PM-KeepID","Value":"true"},{"Name":"Message-ID","Value":"<id@example.org>"},
			{"Name":"List-Unsubscribe","Value":"<https://example.org/u>"}],
		"Attachments":[{"Name":"b.pdf","ContentType":"application/pdf","ContentID":"","Content":"JVBERg=="},
			{"Name":"l.png","ContentType":"image/png","ContentID":"cid:logo","Content":"iVBO"}]}`)
}

func TestBrevo(t *testing.T) {
	r, body := asked(t, provider.Brevo, `{"messageId":"<theirs>"}`)
	if r.URL.Path != "/v3/smtp/email" || r.Header.Get("Api-Key") != key {
		t.Errorf("%s with %v", r.URL, r.Header)
	}
	equalJSON(t, body, `{"sender":{"email":"shop@example.org","name":"Jörg"},
		"to":[{"email":"ann@example.com","name":"A, Ann"}],"cc":[{"email":"ben@example.com"}],
		"bcc":[{"email":"hidden@example.com"}],"replyTo":{"email":"help@example.org"},"subject":"Grüße",
		"textContent":"Hé","htmlContent":"<p>H&eacute;</p>",
		"headers":{"X-Mailin-custom":"message_id:id@example.org","List-Unsubscribe":"<https://example.org/u>"},
		"attachment":[{"name":"b.pdf","content":"JVBERg=="},{"name":"l.png","content":"iVBO"}]}`)
}

// Mailgun and Amazon get the message as it is, and the envelope beside it.
func TestMailgun(t *testing.T) {
	s := sender(t, provider.Mailgun, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
			return
		}
		user, password, _ := r.BasicAuth()
		if r.URL.Path != "/v3/mg.example.org/messages.mime" || user != "api" || password != key ||
			!reflect.DeepEqual(r.MultipartForm.Value["to"], recipients) {
			t.Errorf("%s by %s to %v", r.URL, user, r.MultipartForm.Value["to"])
		}
		f, _, err := r.FormFile("message")
		if err != nil {
			t.Error(err)
			return
		}
		if text, err := io.ReadAll(f); err != nil || string(text) != message {
			t.Errorf("the message came as %q, %v", text, err)
		}
		_, _ = io.WriteString(w, `{"id":"<theirs>","message":"Queued. Thank you."}`)
	})
	if id, err := send(t, s); err != nil || id != "theirs" {
		t.Fatalf("taken as %q, %v", id, err)
	}
}

func TestSES(t *testing.T) {
	r, body := asked(t, provider.SES, `{"MessageId":"theirs"}`)
	var sent struct {
		FromEmailAddress string
		Destination      struct{ ToAddresses []string }
		Content          struct{ Raw struct{ Data []byte } }
	}
	if err := json.Unmarshal([]byte(body), &sent); err != nil || sent.FromEmailAddress != "shop@example.org" ||
		!reflect.DeepEqual(sent.Destination.ToAddresses, recipients) || string(sent.Content.Raw.Data) != message {
		t.Errorf("sent was %s, %v", body, err)
	}
	again, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.Host+r.URL.Path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	again.Header.Set("Content-Type", "application/json")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "mg.example.org", SecretAccessKey: key},
		again, hex.EncodeToString(sum[:]), "ses", "eu-west-1", now); err != nil {
		t.Fatal(err)
	}
	if r.URL.Path != "/v2/email/outbound-emails" || r.Header.Get("Authorization") != again.Header.Get("Authorization") {
		t.Errorf("%s signed %q, want %q", r.URL, r.Header.Get("Authorization"), again.Header.Get("Authorization"))
	}
}

// What a service answers says whether the mail is refused, or nobody's is taken now.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		service string
		status  int
		header  [2]string
		body    string
		want    provider.Error
	}{
		"a bad address": {provider.Postmark, 422, [2]string{}, `{"ErrorCode":300,"Message":"Invalid 'To' address"}`,
			provider.Error{Code: 422, Said: "Invalid 'To' address", Refused: true}},
		"an inactive recipient": {provider.Postmark, 422, [2]string{}, `{"ErrorCode":406,"Message":"inactive"}`,
			provider.Error{Code: 422, Said: "inactive", Refused: true, NoMailbox: true}},
		"a wrong key": {provider.Postmark, 401, [2]string{}, `{"ErrorCode":10,"Message":"Bad or missing token"}`,
			provider.Error{Code: 401, Said: "Bad or missing token"}},
		"too often": {provider.Mailgun, 429, [2]string{"Retry-After", "30"}, `{"message":"slow down"}`,
			provider.Error{Code: 429, Said: "slow down", Wait: 30 * time.Second}},
		"no credit": {provider.Brevo, 402, [2]string{}, `{"code":"not_enough_credits","message":"no credits"}`,
			provider.Error{Code: 402, Said: "not_enough_credits: no credits"}},
		"refused by Amazon": {provider.SES, 400, [2]string{"X-Amzn-Errortype", "MessageRejected"},
			`{"message":"Email address is not verified."}`,
			provider.Error{Code: 400, Said: "MessageRejected Email address is not verified.", Refused: true}},
		"a gateway": {provider.Brevo, 502, [2]string{}, `<html>bad gateway</html>`,
			provider.Error{Code: 502, Said: "<html>bad gateway</html>"}},
		"nothing said": {provider.Mailgun, 503, [2]string{}, ``, provider.Error{Code: 503, Said: "Service Unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sender(t, c.service, func(w http.ResponseWriter, _ *http.Request) {
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := send(t, s)
			var e *provider.Error
			if !errors.As(err, &e) || *e != c.want {
				t.Errorf("%+v, want %+v", err, c.want)
			}
		})
	}
}

// A service that dies with the whole request may have taken the mail; one that nobody
// reaches has not.
func TestAnAnswerThatNeverComes(t *testing.T) {
	s := sender(t, provider.Mailgun, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	var e *provider.Error
	if _, err := send(t, s); !errors.As(err, &e) || !e.Unclear || e.Refused {
		t.Errorf("a service that died: %+v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	client := outbound.New(outbound.Options{AllowHTTP: true,
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	s, err := provider.New(provider.Account{Service: provider.Brevo, Key: key, Endpoint: gone.URL}, client, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := send(t, s); !errors.As(err, &e) || e.Unclear || e.Refused || strings.Contains(err.Error(), key) {
		t.Errorf("a service that is not there: %+v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Send(ctx, provider.Mail{From: "a@b.c", Recipients: recipients, Text: []byte(message)}); !errors.As(err,
		&e) || e.Unclear {
		t.Errorf("cancelled before it began: %+v", err)
	}
}

// Nobody sees a name that the mail hides from them.
func TestHiddenRecipients(t *testing.T) {
	for service, want := range map[string][][]string{
		provider.Mailgun:  {{"x@example.com", "y@example.com"}},
		provider.Postmark: {{"x@example.com"}, {"y@example.com"}},
	} {
		s := sender(t, service, nil)
		got, err := s.Batches([]byte(message), []string{"x@example.com", "y@example.com"})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: hidden ones alone go as %v, want %v, %v", service, got, want, err)
		}
		got, err = s.Batches([]byte(message), recipients)
		if err != nil || !reflect.DeepEqual(got, [][]string{recipients}) {
			t.Errorf("%s: %v, %v", service, got, err)
		}
	}
}

func TestAnAccountIsWhole(t *testing.T) {
	whole := provider.Account{Service: provider.SES, Key: "k", User: "u", Region: "r"}
	for what, change := range map[string]func(*provider.Account){
		"mail.password":     func(a *provider.Account) { a.Key = "" },
		"mail.username":     func(a *provider.Account) { a.User = "" },
		"mail.region":       func(a *provider.Account) { a.Region = "" },
		"postmark, mailgun": func(a *provider.Account) { a.Service = "pigeon" },
		"is none of https":  func(a *provider.Account) { a.Endpoint = "https://user:word@example.com" },
		"none of https":     func(a *provider.Account) { a.Endpoint = "ftp://example.com" },
	} {
		a := whole
		change(&a)
		if _, err := provider.New(a, nil, nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s is not said: %v", what, err)
		}
	}
	if _, err := provider.New(whole, nil, nil); err != nil {
		t.Error(err)
	}
}
