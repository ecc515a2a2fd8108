package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// A row of 10 kB whose lists lie in lists made a page of 50 MB by its indentation.
func TestAJobsPageIsNotMuchLargerThanItsPayload(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	const uuid = "0b1e2d3c-0000-4000-8000-0000000000d1"
	deep := strings.Repeat("[", 4000) + strings.Repeat("]", 4000)
	wide := strings.Repeat("[", 100) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", 100)
	for _, nested := range []string{deep, wide} {
		s.db.MustExec("DELETE FROM jobs")
		payload := `{"type":"cache.clear","uuid":"` + uuid + `","metadata":{"x":` + nested + `},"data":{"x":` +
			nested + `}}`
		s.db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('cmsjobs', ?, 0, "+
			"4000000000, 1)", payload)
		for _, path := range []string{"/admin/jobs/" + uuid, "/admin/jobs/" + uuid + "/edit", "/admin/jobs"} {
			page := s.do("GET", path, nil, basic("admin", "right")).want(t, 200).body
			if len(page) > 10*len(payload)+100_000 {
				t.Errorf("%s has %d bytes for a payload of %d", path, len(page), len(payload))
			}
		}
	}
	escaped := `{"body":"\u003cp\u003eA \u0026 B\u003C/p\u003E","path":"C:\\\u003c","line":"a\\u003c\n"}`
	if got := web.Pretty(json.RawMessage(escaped)); got != "{\n  \"body\": \"<p>A & B</p>\",\n"+
		`  "path": "C:\\<",`+"\n"+`  "line": "a\\u003c\n"`+"\n}" {
		t.Errorf("shown as %s", got)
	}
	if got := web.Pretty(json.RawMessage(`{"a":[1,{"b":"[,\"{"}]}`)); !strings.Contains(got, "\n    {\n") {
		t.Errorf("an ordinary payload is not indented: %s", got)
	}
}
