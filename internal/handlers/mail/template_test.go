package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
	"github.com/cmsjobs/cmsjobs/templates"
)

var exampleLook = template.Branding{Title: "Zoë & Co", URL: "https://example.com",
	Logo: "https://example.com/storage/logo.png", LogoHeight: 40, Email: "hello@example.com",
	Copyright: "© 2026 Zoë & Co",
	Links:     []template.Link{{Name: "Mastodon", URL: "https://social.example/@zoe"}},
	Now:       time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}

func TestEachTemplateWithItsExample(t *testing.T) {
	own, err := template.NewSet(templates.Mail(), "")
	if err != nil {
		t.Fatal(err)
	}
	names := own.Names()
	for _, must := range []string{"welcome", "contact", "password-reset", "content-published", "backup-report",
		"job-failed", "weekly-analytics"} {
		if !strings.Contains(strings.Join(names, " "), must) {
			t.Errorf("there is no template %s", must)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			data, err := own.Example(name)
			if err != nil || len(data) == 0 {
				t.Fatalf("its example: %v, %v", data, err)
			}
			c, err := own.Render(t.Context(), name, "", data, exampleLook)
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"<no value>", "%!", "ZgotmplZ", "<script"} {
				if strings.Contains(c.HTML, bad) || (bad != "<script" && strings.Contains(c.Text+c.Subject, bad)) {
					t.Errorf("%q stands in it:\n%s\n%s", bad, c.HTML, c.Text)
				}
			}
			golden(t, name, "Subject: "+c.Subject+"\n\n"+c.Text+"\n=====\n"+c.HTML)
		})
	}
}

// TestOneVisitorIsNoPlural is the subject of the week's mail.
func TestOneVisitorIsNoPlural(t *testing.T) {
	own, err := template.NewSet(templates.Mail(), "")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[any]string{0: ": 0 visitors in", 1: ": 1 visitor in", 1.0: ": 1 visitor in",
		json.Number("1"): ": 1 visitor in", 11: ": 11 visitors in"} {
		data, err := own.Example("weekly-analytics")
		if err != nil {
			t.Fatal(err)
		}
		data["visitors"] = n
		c, err := own.Render(t.Context(), "weekly-analytics", "", data, exampleLook)
		if err != nil || !strings.Contains(c.Subject, want) {
			t.Errorf("%v: %q, %v", n, c.Subject, err)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	testgolden.Check(t, filepath.Join("testdata", name+".golden"), []byte(got))
}

func TestTheOperatorsTemplatesWin(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("welcome.html.tmpl", `{{define "title"}}{{end}}{{define "content"}}FRAME {{.name}}{{end}}`)
	write("welcome.vi.txt.tmpl", `{{define "subject"}}Chào {{.name}}{{end}}{{define "content"}}Chào{{end}}`)
	write("own.html.tmpl",
		`{{define "title"}}{{end}}{{define "content"}}<a href="{{.link}}" onclick="f({{.name}})">{{.name}}</a>{{end}}`)
	write("own.txt.tmpl", `{{define "subject"}}{{.name}}{{end}}{{define "content"}}{{.name}}{{end}}`)
	own, err := template.NewSet(templates.Mail(), folder)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"name": "<b>\nZoë", "link": "javascript:alert(1)"}
	c, err := own.Render(t.Context(), "welcome", "vi_VN", data, exampleLook)
	if err != nil || c.Subject != "Chào <b> Zoë" || !strings.Contains(c.HTML, "FRAME &lt;b&gt;") {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = own.Render(t.Context(), "welcome", "de", data, exampleLook); err != nil ||
		!strings.Contains(c.Subject, "Welcome") {
		t.Errorf("another locale: %+v, %v", c.Subject, err)
	}
	if c, err = own.Render(t.Context(), "own", "", data, exampleLook); err != nil ||
		strings.Contains(c.HTML, "javascript:") {
		t.Errorf("%s, %v", c.HTML, err)
	}
}

func TestTemplatesThatCannotBeRendered(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"endless": `{{define "content"}}{{range $i := 9000000000}}xxxxxxxxxxxxxxxxxxxxxxxxx{{end}}{{end}}`,
		"method":  `{{define "content"}}{{.name.Close}}{{end}}`,
		"file":    `{{define "content"}}{{template "/etc/passwd"}}{{end}}`} {
		for _, part := range []string{"html", "txt"} {
			if err := os.WriteFile(filepath.Join(folder, name+"."+part+".tmpl"),
				[]byte(`{{define "subject"}}s{{end}}{{define "title"}}{{end}}`+text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	own := &template.Set{Own: templates.Mail(), Folder: folder}
	for _, name := range []string{"endless", "method", "file", "missing", "../welcome", "layout/../welcome", "Welcome",
		"", "layout", "welcome"} {
		// welcome needs a name
		if _, err := own.Render(t.Context(), name, "../../etc", map[string]any{}, exampleLook); !jobs.IsPermanent(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := own.Render(ended, "endless", "", map[string]any{}, exampleLook); err == nil {
		t.Error("a cancelled job goes on rendering")
	}
}

func TestTheCMSsOwnTemplates(t *testing.T) {
	s := newSink(t, nil)
	c := config(t, s, jobstest.SQLite)
	c.Site.Root = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(c.Site.Root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("platform/plugins/contact/resources/email-templates/notice.tpl", "{# a comment #}{{ header }}<p>From {{ "+
		"contact_name }} <{{ contact_email | raw }}></p>{{ footer }}")
	write("platform/plugins/contact/resources/email-templates/hard.tpl", "{% if x %}{{ x }}{% endif %}")
	write("platform/plugins/contact/resources/email-templates/filter.tpl", "{{ 'key' | trans }}")
	write("secret.tpl", "canary")
	c.Site.DB.MustExec(`CREATE TABLE settings (key TEXT, value TEXT)`)
	c.Site.DB.MustExec(`INSERT INTO settings VALUES
		('plugins_contact_notice_subject','New message on {{ site_title }}'),('admin_title','Zoë & Co'),('admin_email','["boss@example.com"]')`)
	h := handler(t, c)
	payload := func(name string) map[string]any {
		return map[string]any{"to": "administrators", "template": name, "data": map[string]any{
			"contact_name": "<b>An</b>", "contact_email": "an@example.net"}}
	}
	if _, err := run(t, h, "j", 1, payload("cms:plugins/contact/notice")); err != nil {
		t.Fatal(err)
	}
	got := s.all()[0]
	p := parse(t, got.data)
	subject, _ := p.header.Subject()
	if got.to[0] != "boss@example.com" || subject != "New message on Zoë & Co" ||
		!strings.Contains(p.html, "From &lt;b&gt;An&lt;/b&gt; <an@example.net>") ||
		!strings.Contains(p.html, `<a href="https://example.com">`) || strings.Contains(p.html, "comment") {
		t.Errorf("%v %q\n%s", got.to, subject, p.html)
	}
	write("storage/app/email-templates/contact/notice.tpl", "<p>changed by {{ contact_name }}</p>")
	if preview, err := h.Preview(t.Context(), "cms:plugins/contact/notice", "", nil); err != nil ||
		!strings.Contains(preview.HTML, "changed by") {
		t.Errorf("the administrator's copy: %+v, %v", preview, err)
	}
	for i, name := range []string{"cms:plugins/contact/hard", "cms:plugins/contact/filter",
		"cms:plugins/contact/missing", "cms:plugins/../secret", "cms:plugins/contact/../../secret", "cms:secret",
		"cms:"} {
		if _, err := run(t, h, fmt.Sprint("bad", i), 1, payload(name)); !jobs.IsPermanent(err) ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTextOfHTML(t *testing.T) {
	for html, want := range map[string]string{
		"<h1>Hi</h1><p>Zoë &amp; Co<br>second</p>":                                           "Hi\n\nZoë & Co\nsecond\n",
		"<style>p{}</style><script>x()</script><title>t</title><p>a</p>":                     "a\n",
		`<p>See <a href="https://e.example/x">this</a>, <a href="mailto:a@b.c">mail</a></p>`: "See this (https://e.example/x), mail\n",
		`<a href="https://e.example/">https://e.example/</a>`:                                "https://e.example/\n",
		"<ul><li>one</li><li>two</li></ul>":                                                  "- one\n- two\n",
		"<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>":                    "a b\n\nc\n",
		"plain":     "plain\n",
		"<p>broken": "broken\n",
	} {
		if got := template.PlainText(html); got != want {
			t.Errorf("%s\nis   %q\nwant %q", html, got, want)
		}
	}
}

func TestLookReadsTheCMSsSettings(t *testing.T) {
	h := template.NewLibrary(&cms.Site{Env: cms.Env{"APP_URL": "https://example.com"}}, nil, func() time.Time {
		return time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	})
	l := h.Branding(cms.Settings{"admin_title": "T", "admin_logo": "general/logo.png", "time_zone": "Asia/Ho_Chi_Minh",
		"email_template_copyright_text": "© %Y T",
		"email_template_social_links":   `[[{"key":"name","value":"X"},{"key":"url","value":"https://x.example"}],[{"key":"url","value":"javascript:alert(1)"}]]`})
	if l.Logo != "https://example.com/storage/general/logo.png" || l.Copyright != "© 2027 T" || len(l.Links) != 1 ||
		l.Links[0].Name != "X" {
		t.Errorf("%+v", l)
	}
}
