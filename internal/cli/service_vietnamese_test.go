package cli

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

var (
	// told is where pages say why something was refused.
	told = regexp.MustCompile(`(?s)<p class="(?:note bad|lead|err-text)"[^>]*>(.*?)</p>`)
	// english is a word that Vietnamese sentences and names of fields do not have.
	english = regexp.MustCompile(`(?i)\b(the|is|are|has|have|must|cannot|needs|not|which|that|with|from|only)\b`)
	// quotedWords are what somebody wrote, repeated.
	quotedWords = regexp.MustCompile(`&#34;.*?&#34;`)
)

// TestRefusalsOnAVietnamesePageAreVietnamese sends what each type and each form
// refuses, and reads the answer as a person does who chose Vietnamese.
func TestRefusalsOnAVietnamesePageAreVietnamese(t *testing.T) {
	t.Parallel()
	s := startService(t, `schedule: {enabled: false}
mail: {driver: log, from: editor@demo.example, one_recipient: true}
external: {commands: {hello: {program: /bin/true}}}
`, newDatabase(t, jobstest.SQLite, tables.Stock))
	who := bearer(s.token("admin"))
	who.Set("Accept-Language", "vi")
	who.Set("Content-Type", "application/x-www-form-urlencoded")
	form := func(pairs ...string) string {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v.Encode()
	}
	type try struct{ path, body string }
	var all []try
	for jobType, payloads := range refusedPayloads {
		for _, payload := range payloads {
			all = append(all, try{"/admin/enqueue", form("type", jobType, "more", payload)})
		}
	}
	all = append(all,
		try{"/admin/enqueue", form("type", "nothing.known")},
		try{"/admin/enqueue", form("type", "cache.clear", "more", "[1")},
		try{"/admin/enqueue", form("type", "cache.clear", "queue", "a b")},
		try{"/admin/enqueue", form("type", "cache.clear", "delay", "-1")},
		try{"/admin/enqueue", form("type", "cache.clear", "priority", "99999999999")},
		try{"/admin/start", form("type", "mail.send", "payload", `{"to":"x"}`)},
		try{"/admin/schedules/nothing", form("do", "save", "cron", "* * * * *")},
		try{"/admin/schedules/sitemap.generate", form("do", "save", "cron", "at noon")},
		try{"/admin/schedules/sitemap.generate", form("do", "save", "cron", "TZ=UTC 0 3 * * *")},
		try{"/admin/schedules/sitemap.generate", form("do", "what")},
		try{"/admin/tokens", form("name", "", "scopes", "read")},
		try{"/admin/tokens", form("name", "x")},
		try{"/admin/tokens", form("name", "x", "scopes", "root")},
		try{"/admin/webhooks", form("url", "ftp://x", "events", "job.failed")},
		try{"/admin/webhooks", form("url", "https://u:p@x.example/", "events", "job.failed")},
		try{"/admin/webhooks", form("url", "https://x.example/", "events", "what?")},
		try{"/admin/suppressions", form("address", "nobody")},
		try{"/admin/jobs/bulk", form("action", "explode")},
		try{"/admin/jobs/bulk", form("action", "retry")},
		try{"/admin/jobs/00000000-0000-4000-8000-000000000000/again", form("sure", "yes")},
		try{"/admin/jobs?cursor=zz", ""},
		try{"/admin/audit?cursor=zz", ""}, try{"/admin/mail?cursor=zz", ""},
		try{"/admin/nothing", ""}, try{"/admin/backups/none/restore", form("part", "files", "sure", "yes")},
		try{"/admin/failed/canary", form("cause", "")}, try{"/admin/deliveries/9/redeliver", form("sure", "yes")})
	said := 0
	for _, x := range all {
		method := http.MethodPost
		if x.body == "" {
			method = http.MethodGet
		}
		status, page := s.try(method, x.path, x.body, who)
		if status >= http.StatusInternalServerError {
			t.Errorf("%s %s: %d %s", x.path, x.body, status, page)
		}
		for _, m := range told.FindAllStringSubmatch(string(page), -1) {
			said++
			if words := english.FindAllString(quotedWords.ReplaceAllString(m[1], ""), -1); words != nil {
				t.Errorf("%s %.200s: %d, in English: %s", x.path, x.body, status, m[1])
			}
		}
		if status < http.StatusBadRequest || !told.Match(page) {
			t.Logf("%s %.200s: %d, nothing is refused", x.path, x.body, status)
		}
	}
	if said < len(all)-8 {
		t.Errorf("%d of %d requests are refused by words", said, len(all))
	}
}

// refusedPayloads are what the types refuse, by type.
var refusedPayloads = map[string][]string{
	"mail.send": {`{}`, `{"to":"x"}`, `{"to":["a@b.example","@","a b@c","x@[127.0.0.1]","ü@"],"body":"b"}`,
		`{"to":"a@b.example"}`, `{"to":"a@b.example","subject":"a\nb","body":"b"}`,
		`{"to":"a@b.example","body":"b","template":"t"}`, `{"to":"a@b.example","body":"b","format":"rtf"}`,
		`{"to":"a@b.example","body":"b","attachments":["../.env"]}`, `{"to":"a@b.example","body":"b","maxAge":-1}`,
		`{"to":"a@b.example","body":"b","attachments":[{"content":"eA=="}]}`,
		`{"to":"a@b.example","body":"b","attachments":[{"key":"k"}]}`,
		`{"to":"a@b.example","body":"b","attachments":[{}]}`,
		`{"to":"a@b.example, c@d.example","body":"b"}`, `{"to":7,"body":"b"}`, `{"to":"a@b.example","body":7}`,
		`{"to":"a@b.example","body":"b","unsubscribe":"ftp://x"}`, `{"to":"a@b.example","body":"b","data":3}`,
		`{"body":"b"}`, `{"to":"a@b.example","recipient":"c@d.example","body":"b"}`,
		`{"to":"a@b.example","subject":"` + strings.Repeat("x", 1200) + `","body":"b"}`,
		`{"to":"a@b.example","boddy":1}`},
	"notification.send":  {`{}`, `{"title":"t","level":"loud"}`, `{"digest":true}`, `{"title":7}`},
	"logs.cleanup":       {`{"days":-1}`, `{"days":"many"}`},
	"content.publish":    {`{}`, `{"model":"posts","id":""}`},
	"media.processImage": {`{}`, `{"mediaFileId":"a/b"}`, `{"filePath":"a\\b"}`, `{"filePath":"../a"}`},
	"backup.generate": {`{"includeFiles":false,"includeDatabase":false}`, `{"storage":"nowhere"}`,
		`{"name":"` + strings.Repeat("n", 300) + `"}`},
	"backup.verify":  {`{"level":"deep"}`, `{"storage":"nowhere"}`},
	"backup.restore": {`{}`, `{"id":"x"}`},
	"analytics.process": {`{"dateRange":{"start":"x","end":"y"}}`,
		`{"dateRange":{"start":"2026-02-02","end":"2026-02-01"}}`},
	"analytics.weekly": {`{"week":"9"}`, `{"week":"2026-W60"}`},
	"sitemap.indexnow": {`{"mode":"what"}`, `{"sitemapUrl":"javascript:x"}`},
	"cmsjobs.probe":    {`{"sleep":"a year"}`, `{"sleep":"900h"}`},
	"webhook.deliver":  {`{}`},
	"cache.purge":      {`{}`},
	"command.run":      {`{"name":"rm"}`, `{}`},
	"jobs.bulk":        {`{}`},
}
