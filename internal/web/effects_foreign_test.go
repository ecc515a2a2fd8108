package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// PHP's own jobs, of whose type nobody here knows more than the name, run again
// for operators: not for a token that is limited to types, and not where the
// configuration offers some types only, one by one or with all others.
func TestJobsOfOthersRunForNobodyWhoIsLimitedToTypes(t *testing.T) {
	const uuid = "0b1e2d3c-0000-4000-8000-0000000000f1"
	sites := map[bool]*site{false: newSite(t, jobstest.SQLite),
		true: newSite(t, jobstest.SQLite, func(c *config) { c.AllowedTopics = []string{"cache.clear"} })}
	for _, s := range sites {
		s.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	for _, who := range []struct {
		name    string
		scopes  access.Scopes
		types   []string
		offered bool // some types only
		may     bool
	}{
		{"an operator", access.Operator.Scopes(), nil, false, true},
		{"an operator for one type", access.Operator.Scopes(), []string{"cache.clear"}, false, false},
		{"an administrator for one type", access.Administrator.Scopes(), []string{"cache.clear"}, false, false},
		{"an operator where one type is offered", access.Operator.Scopes(), nil, true, false},
		{"an administrator where one type is offered", access.Administrator.Scopes(), nil, true, true},
	} {
		s := sites[who.offered]
		token := bearer(s.limitedToken(who.scopes, who.types...))
		for way, do := range map[string]func() answer{
			"retry":     func() answer { return s.do("POST", "/api/v1/failed/"+uuid+"/retry", "{}", token) },
			"by id":     func() answer { return s.do("POST", "/api/v1/failed/retry", `{"ids":["`+uuid+`"]}`, token) },
			"with all":  func() answer { return s.do("POST", "/api/v1/failed/retry", `{"all":true}`, token) },
			"of a type": func() answer { return s.do("POST", "/api/v1/jobs/bulk", ofPay, token) },
			"bulk form": func() answer {
				return s.submit("/admin/jobs/bulk", form("action", "retry", "ids", uuid), token)
			},
			"again form": func() answer { return s.submit("/admin/jobs/"+uuid+"/again", form(), token) },
		} {
			s.db.MustExec("DELETE FROM jobs")
			s.db.MustExec("DELETE FROM failed_jobs")
			s.db.MustExec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES "+
				"(?, 'database', 'default', ?, 'no luck', '2026-01-02 03:04:05')", uuid, fmt.Sprintf(
				`{"uuid":%q,"displayName":"App\\Jobs\\Pay","job":"Illuminate\\Queue\\CallQueuedHandler@call",`+
					`"data":{"commandName":"App\\Jobs\\Pay","command":"O:12:\"App\\Jobs\\Pay\":0:{}"}}`, uuid))
			a := do()
			if ran := s.due() == 1; ran != who.may {
				t.Errorf("%s, %s: ran %t, may %t (%d %.300s)", who.name, way, ran, who.may, a.status, a.body)
			}
			if a.status >= 500 || strings.Contains(string(a.body), `"changed":1`) && !who.may {
				t.Errorf("%s, %s: %d %.300s", who.name, way, a.status, a.body)
			}
		}
	}
}

// ofPay retries the failed jobs of one type of PHP's.
const ofPay = `{"action":"retry","type":["App\\Jobs\\Pay"]}`
