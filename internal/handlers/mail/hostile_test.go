//go:build unix

package mail

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// hostileAddresses would reach somebody else, or say something else, if they
// were put into a header or a command as they are.
var hostileAddresses = []string{
	"a@b.example\r\nBcc: victim@evil.example", "a@b.example\nBcc: victim@evil.example",
	"a@b.example\rBcc: v@evil.example",
	"a@b.example\r\n\r\nbody", "a@b.example\x00", "a@b.example\u2028Bcc: v@evil.example", "a@b.example\u2029x",
	"a@b.example\u0085x",
	"\"a\r\nBcc: v@evil.example\" <a@b.example>", "x\nBcc: v@e.example <a@b.example>",
	"=?utf-8?q?a=0D=0ABcc:_v@evil.example?= <a@b.example>",
	"=?utf-8?b?YQ0KQmNjOiB2QGV2aWwuZXhhbXBsZQ==?= <a@b.example>",
	"a@b.example> SIZE=1", "a@b.example> NOTIFY=NEVER", "<a@b.example>\r\nRCPT TO:<v@evil.example>",
	"a@b.example>\r\nDATA",
	"\"a b\"@b.example", "\"a>b\"@b.example", "\"a\\\"b\"@b.example", "\"@evil.example\"@b.example", "a@[127.0.0.1]",
	"a@[IPv6:::1]",
	"@evil.example:a@b.example", "<@a.example,@b.example:c@d.example>", "a@b@c.example", "a@@b.example", "a",
	"@b.example", "a@", "",
	"a@b.example,c@d.example,", "undisclosed:a@b.example;", "a@b..example", "a@.example", "a@-b.example",
	"a@b-.example", "a@b_c.example", "a@exa mple",
	".a@b.example", "a.@b.example", "a..b@b.example", "-oQ/tmp@b.example", "-OQueueDirectory=/tmp@b.example",
	"a(comment\n)@b.example",
	strings.Repeat("a", 65) + "@b.example", "a@" + strings.Repeat("b.", 130) + "example",
	"a@" + strings.Repeat("b", 64) + ".example",
	"a\x7f@b.example", "a\u200b@b.example", "\xff@b.example", "a@b.example\xff", "a\t@b.example",
	"a@b.example;c@d.example", "\u202ea@b.example",
}

func TestHostileAddressesAreRefused(t *testing.T) {
	for _, text := range hostileAddresses {
		if a, err := address.Parse(text); err == nil {
			t.Errorf("%q is taken as %+v", text, a)
		}
	}
}

func TestGoodAddressesAreTaken(t *testing.T) {
	for text, want := range map[string]address.Address{
		"a@b.example":                        {Mailbox: "a@b.example"},
		"  A.b+c@B.Example ":                 {Mailbox: "A.b+c@b.example"},
		"Zoë O'Connor <zoe@bücher.example>":  {Name: "Zoë O'Connor", Mailbox: "zoe@xn--bcher-kva.example"},
		`"Last, First" <x@y.example>`:        {Name: "Last, First", Mailbox: "x@y.example"},
		"=?utf-8?q?Zo=C3=AB?= <z@y.example>": {Name: "Zoë", Mailbox: "z@y.example"},
		"用户@例子.广告":                           {Mailbox: "用户@xn--fsqu00a.xn--4rr70v"},
		"root@localhost":                     {Mailbox: "root@localhost"},
		"o'brien!#$%&*/=?^_`{|}~@y.example":  {Mailbox: "o'brien!#$%&*/=?^_`{|}~@y.example"},
	} {
		if got, err := address.Parse(text); err != nil || got != want {
			t.Errorf("%q is %+v (%v), want %+v", text, got, err, want)
		}
	}
}

// Every field that becomes part of a header, with every kind of line end: the
// job fails at once, and nothing reaches the server.
func TestInjectedHeadersAreRefused(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	tried := 0
	for _, end := range []string{"\r\n", "\n", "\r", "\x00", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c"} {
		evil := "x" + end + "Bcc: victim@evil.example"
		for _, change := range []map[string]any{{"to": evil}, {"to": []string{"a@b.example", evil}}, {"cc": evil},
			{"bcc": evil}, {"replyTo": evil}, {"from": evil}, {"subject": evil},
			{"from": "\"" + evil + "\" <a@b.example>"}, {"to": map[string]any{"email": "a@b.example", "name": evil}},
			{"attachments": []any{map[string]any{"content": "QQ==", "name": evil}}},
			{"attachments": []any{map[string]any{"content": "QQ==", "name": "a", "contentType": "text/plain" + evil}}},
			{"attachments": []any{map[string]any{"content": "QQ==", "name": "a", "contentId": evil}}}} {
			payload := map[string]any{"to": "a@b.example", "subject": "s", "body": "b"}
			for key, value := range change {
				payload[key] = value
			}
			tried++
			if _, err := run(t, h, fmt.Sprint("j", tried), 1, payload); !jobs.IsPermanent(err) {
				t.Errorf("%q: %v", change, err)
			}
		}
	}
	if n := len(s.all()); n != 0 || tried < 100 {
		t.Errorf("%d mails went out of %d tries", n, tried)
	}
}

// Values that come from visitors end up in subjects through variables: line
// ends must not survive there either, and HTML must not be HTML.
func TestHostileValuesInTemplates(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	evil := "<script>alert(1)</script>\r\nBcc: victim@evil.example\r\n\r\n{{ site_title }}"
	data := map[string]any{"name": evil, "email": "javascript:alert(1)", "content": evil, "subject": evil}
	if _, err := run(t, h, "template", 1, map[string]any{"to": "a@b.example", "template": "contact",
		"data": data}); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, h, "body", 1, map[string]any{"to": "a@b.example", "subject": "Hi {{ first }}",
		"body": "<p>{{ name }} {{unknown}}</p>", "data": map[string]any{"first": "Zoë", "name": evil}}); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, h, "subject", 1, map[string]any{"to": "a@b.example", "subject": "{{ name }}", "body": "b",
		"data": data}); !jobs.IsPermanent(err) {
		t.Errorf("a line end from a variable in a subject: %v", err)
	}
	got := s.all()
	if len(got) != 2 {
		t.Fatalf("%d mails", len(got))
	}
	for _, g := range got {
		p := parse(t, g.data)
		if p.header.Has("Bcc") || strings.Contains(p.html, "<script>") || strings.Contains(p.html, "Example</p>") ||
			strings.Contains(p.html, "{{unknown") {
			t.Errorf("it got through: %v\n%s", p.header, p.html)
		}
		if !strings.Contains(p.html, "&lt;script&gt;") || !strings.Contains(p.html, "{{ site_title }}") {
			t.Errorf("the text is not as it was written: %s", p.html)
		}
	}
}

// Bodies that would end the message early or break its lines arrive as they are.
func TestHostileBodies(t *testing.T) {
	s := newSink(t, nil)
	h := handler(t, config(t, s, jobstest.SQLite))
	for i, text := range []string{".", "\r\n.\r\n", "a\r\n.\r\nMAIL FROM:<x@evil.example>\r\nRCPT " +
		"TO:<v@evil.example>\r\nDATA\r\n", "\n.\n", "\r.\r", "..\r\n..", strings.Repeat("x", 100_000),
		"\x00\x01\xff"[:2], "=0D=0A.=0D=0A", "--boundary--\r\n\r\nfrom here", "From me\r\n>From"} {
		if _, err := run(t, h, fmt.Sprint("j", i), 1, map[string]any{"to": "a@b.example", "subject": "s", "body": text,
			"format": "text"}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := s.all()
		if len(got) != i+1 {
			t.Fatalf("%q made %d mails", text, len(got)-i)
		}
		if p := parse(t, got[i].data); lines(p.text) != lines(text) {
			t.Errorf("%.40q arrived as %.40q", text, p.text)
		}
	}
}

// lines is text with one kind of line end and none at its end: SMTP adds one.
func lines(text string) string {
	return strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

func TestAttachmentsStayUnderTheirFolder(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	outside, inside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, "canary")
	write(filepath.Join(inside, "big"), strings.Repeat("x", 2000))
	write(filepath.Join(inside, "small"), "fine")
	for link, target := range map[string]string{"link": secret, "up": "../" + filepath.Base(outside) + "/secret",
		"dir": outside} {
		if err := os.Symlink(target, filepath.Join(inside, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(inside, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.AttachmentRoots, c.MaxAttachmentBytes = []string{inside}, 1000
	h := handler(t, c)
	for i, a := range []any{secret, "../" + filepath.Base(outside) + "/secret", "/etc/passwd", "/proc/self/environ",
		"link", "up", "dir/secret", "folder", "pipe", "missing", "big", inside,
		"small\x00", "..", "//etc/passwd", "C:\\secret", "https://evil.example/x", "file:///etc/passwd",
		map[string]any{"key": "x"}, map[string]any{"content": "!!", "name": "n"},
		map[string]any{"content": base64.StdEncoding.EncodeToString(make([]byte, 1001)), "name": "n"}, map[string]any{
			"content": "QQ=="}, map[string]any{"path": "small", "key": "x"}, map[string]any{}} {
		_, err := run(t, h, fmt.Sprint("j", i), 1, map[string]any{"to": "a@b.example", "subject": "s", "body": "b",
			"attachments": []any{a}})
		if !jobs.IsPermanent(err) {
			t.Errorf("%v: %v", a, err)
		}
	}
	if len(s.all()) != 0 {
		t.Fatal("a mail went out")
	}
	for i, name := range []string{"small", filepath.Join(inside, "small"), "folder/../small"} {
		if _, err := run(t, h, fmt.Sprint("ok", i), 1, map[string]any{"to": "a@b.example", "subject": "s", "body": "b",
			"attachments": []string{name}}); err != nil {
			t.Error(err)
		}
	}
	for _, g := range s.all() {
		if bytes.Contains(g.data, []byte(base64.StdEncoding.EncodeToString([]byte("canary")))) {
			t.Error("the secret went out")
		}
	}
}

func TestFileNamesThatLieAreMadePlain(t *testing.T) {
	for name, want := range map[string]string{"../../etc/passwd": "passwd", `..\..\boot.ini`: "boot.ini",
		"invoice\u202efdp.exe": "invoicefdp.exe", `a"b.txt`: "ab.txt", "/": "attachment", ".": "attachment",
		"bảng giá.pdf": "bảng giá.pdf"} {
		if got := fileName(Attachment{Name: name}); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, text := range hostileAddresses {
		f.Add(text)
	}
	f.Add("Zoë <zoe@bücher.example>")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := address.Parse(text)
		if err != nil {
			return
		}
		if len(a.Mailbox) > 254 || strings.Count(a.Mailbox, "@") != 1 ||
			strings.ContainsAny(a.Mailbox, "\r\n\x00 <>,;:\"\\()[]\u2028\u2029") || a.Mailbox[0] == '-' {
			t.Fatalf("%q is %q", text, a.Mailbox)
		}
		if strings.ContainsAny(a.Name, "\r\n\x00\u2028\u2029") {
			t.Fatalf("%q has the name %q", text, a.Name)
		}
		// What we make of it is read back as the same by the reader of RFC 5322.
		back, err := mail.ParseAddress(a.Header().String())
		if err != nil || back.Address != a.Mailbox {
			t.Fatalf("%q is written %q and read as %v (%v)", text, a.Header(), back, err)
		}
		if again, err := address.Parse(a.Mailbox); err != nil || again.Mailbox != a.Mailbox {
			t.Fatalf("%q is not stable: %q, %v", a.Mailbox, again.Mailbox, err)
		}
	})
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte(
		`{"to":["a@b.c",{"email":"x@y.z","name":"n"}],"subject":"s","body":"b","attachments":["a",{"content":"QQ==","name":"n"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p SendPayload
		if json.Unmarshal(data, &p) != nil || p.Validate() != nil {
			return
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again SendPayload
		if err := json.Unmarshal(raw, &again); err != nil || again.Validate() != nil {
			t.Fatalf("%s is written as %s, which is not taken: %v", data, raw, again.Validate())
		}
	})
}
