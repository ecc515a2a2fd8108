package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	jobpages "github.com/cmsjobs/cmsjobs/internal/web/feature/jobs"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
)

// The types of the property: public ones, one for administrators, and those
// that the service makes itself.
var (
	publicKinds  = []string{"cache.clear", "mail.send", "media.processImage"}
	serviceKinds = []string{"webhook.deliver", "backup.restore", jobpages.Bulk.Name}
	allKinds     = slices.Concat(publicKinds, []string{"cmsjobs.probe"}, serviceKinds)
)

// The payloads of the property. What a row, a schedule or a kept mail holds, and
// what a request names, are of the same sort.
const (
	fine     = "fine"     // the type's handler takes it
	refused  = "refused"  // the handler refuses it for good, as a path outside of its folder
	reserved = "reserved" // it sets a field that only administrators may set
	huge     = "huge"     // it has more bytes than a payload may
)

var sorts = []string{fine, refused, reserved, huge}

// payloadOf is one of a sort.
func payloadOf(jobType, sort string) string {
	switch sort {
	case refused:
		return `{"path":"../.env"}`
	case reserved:
		return `{"to":"a@b.example","immediate":true}`
	case huge:
		return `{"blob":"` + strings.Repeat("x", jobs.MaxPayload) + `"}`
	}
	switch jobType {
	case "mail.send":
		return `{"to":"a@b.example"}`
	case jobpages.Bulk.Name:
		return `{"action":"retry"}`
	}
	return `{"n":1}`
}

// restricted are the public types' restrictions.
var restricted = jobs.Restriction[map[string]any]{
	Refuse: func(_ json.RawMessage, p map[string]any) error {
		if path, _ := p["path"].(string); strings.Contains(path, "..") {
			return errors.New("the path leaves its folder")
		}
		return nil
	},
	Reserved: func(p map[string]any) []string {
		if p["immediate"] == true {
			return []string{"immediate"}
		}
		return nil
	},
}

// A desk that no longer fits what the pages ask for would answer 404 unseen.
var (
	_ backups.Restorer = desk{}
	_ backups.Browser  = desk{}
)

// desk stands for handlers that enqueue: mail, webhooks, media, backups.
type desk struct {
	*features
	site func() *site
	kept *string // the payload that was kept of a mail
}

func (d desk) put(ctx context.Context, jobType string) (jobs.Receipt, error) {
	list, err := d.site().Enqueue(ctx, jobs.Spec{Type: jobType, Data: []byte(payloadOf(jobType, fine))})
	if err != nil {
		return jobs.Receipt{}, err
	}
	return list[0], nil
}

func (d desk) MailAgain(context.Context, string) (jobs.Spec, error) {
	return jobs.Spec{Type: "mail.send", Data: []byte(*d.kept)}, nil
}
func (d desk) Redeliver(ctx context.Context, _ string) (jobs.Receipt, error) {
	return d.put(ctx, "webhook.deliver")
}
func (d desk) Regenerate(ctx context.Context, _ bool) (int, error) {
	_, err := d.put(ctx, "media.processImage")
	return 1, err
}
func (d desk) RestorePost(ctx context.Context, _ string, _ int64, _ string) (jobs.Receipt, error) {
	return d.put(ctx, "backup.restore")
}
func (d desk) RestoreMoment(ctx context.Context, _ backups.MomentPlan, _ string) (jobs.Receipt, error) {
	return d.put(ctx, "backup.restore")
}
func (d desk) RestoreBackup(
	ctx context.Context, _ string, _ backups.RestorePart, _ string, _ backups.RestoreAllowance,
) (jobs.Receipt, error) {
	return d.put(ctx, "backup.restore")
}

// effectSite is a site with all types, and a schedule entry for each.
type effectSite struct {
	*site
	kept       *string
	schedules  *schedule.Scheduler
	offered    []string // the only types that others than administrators may enqueue; nil is all
	adminKinds []string // the configuration's
}

func newEffectSite(t *testing.T, change func(*config)) effectSite {
	var s *site
	kept := new(string)
	var scheduler *schedule.Scheduler
	var offered, adminKinds []string
	s = newSite(t, jobstest.SQLite, func(c *config) {
		for _, jobType := range allKinds {
			if _, there := c.Registry.Lookup(jobType); there {
				continue
			}
			in := jobs.Internal{Maker: jobs.Service}
			if jobType == "cmsjobs.probe" {
				in.Maker = jobs.Administrators
			}
			k := jobs.Kind[map[string]any]{Name: jobType, Queue: "cmsjobs"}
			do := func(context.Context, jobs.Job, map[string]any) error { return nil }
			if slices.Contains(publicKinds, jobType) {
				jobs.Handle(c.Registry, k, do)
			} else {
				jobs.HandleInternal(c.Registry, in, k, do)
			}
		}
		for _, jobType := range publicKinds {
			jobs.Restrict(c.Registry, jobs.Kind[map[string]any]{Name: jobType}, restricted)
		}
		var entries []schedule.Entry
		for _, jobType := range allKinds {
			entries = append(entries, schedule.Entry{Name: jobType, Cron: "0 3 * * *", Job: jobs.Spec{
				Type: jobType, Queue: "cmsjobs", Data: []byte(payloadOf(jobType, fine))}})
		}
		store := c.Enqueuer.(*site).store
		var err error
		scheduler, err = schedule.New(schedule.Config{Entries: entries, Ticker: store, Edits: store, History: store,
			Zone: func(context.Context) (*time.Location, error) { return time.UTC, nil }})
		if err != nil {
			t.Fatal(err)
		}
		d := desk{&features{}, func() *site { return s }, kept}
		c.Schedules = scheduler
		c.Parts = feature.Ports{Backups: d, Mail: mail.Ports{Log: d}, Webhooks: d, Media: d}
		c.OperatorKinds = []string{"webhook.deliver"}
		change(c)
		offered, adminKinds = c.AllowedTopics, c.AdminKinds
	})
	s.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return effectSite{s, kept, scheduler, offered, adminKinds}
}

// stock are jobs of one type: one that failed, one that ended well, one that waits.
type stock struct{ failed, ended, waiting, cause, payload string }

// prepare leaves nothing but the three jobs of a type, and its schedule entry.
// Their payload is as a row of the CMS may have it.
func (s effectSite) prepare(jobType, sort string) stock {
	s.t.Helper()
	payload := payloadOf(jobType, sort)
	*s.kept = payload
	for _, table := range []string{"jobs", "failed_jobs", "cmsjobs_failures", "cmsjobs_runs", "cmsjobs_schedules",
		"cmsjobs_ticks", "cmsjobs_internal_orders"} {
		s.db.MustExec("DELETE FROM " + table)
	}
	ctx := s.t.Context()
	n := jobs.Spec{Type: jobType, Queue: "cmsjobs", Data: []byte(payloadOf(jobType, fine))}
	receipts, err := s.Enqueue(ctx, n, n, n.In(time.Hour))
	if err != nil {
		s.t.Fatal(err)
	}
	// one by one: some types run alone
	for i, end := range []jobs.Settlement{{Outcome: jobs.Failed, Error: "no luck"}, {Outcome: jobs.Completed}} {
		claimed, err := s.store.Claim(ctx, jobs.ClaimRequest{Worker: "test", Queues: []string{"cmsjobs"}, Limit: 1,
			Lease: time.Minute})
		if err != nil || len(claimed) != 1 || claimed[0].Job.UUID != receipts[i].UUID {
			s.t.Fatalf("%v of %s was claimed, %v", claimed, jobType, err)
		}
		end.Claimed = claimed[0]
		if _, err := s.store.Settle(ctx, []jobs.Settlement{end}); err != nil {
			s.t.Fatal(err)
		}
	}
	if sort != fine {
		for table, column := range map[string]string{"jobs": "payload", "failed_jobs": "payload",
			"cmsjobs_runs": "data"} {
			was := payloadOf(jobType, fine)
			if n, err := s.db.MustExec("UPDATE "+table+" SET "+column+" = REPLACE("+column+", ?, ?)", was,
				payload).RowsAffected(); err != nil || n != 1 && table != "cmsjobs_runs" {
				s.t.Fatalf("%d rows of %s have another payload, %v", n, table, err)
			}
		}
	}
	data := json.RawMessage(strings.TrimSuffix(payload, "}") + `,"before":true}`) // another one, of the same sort
	if err := s.schedules.ChangeSchedule(ctx, jobType, jobs.ScheduleChange{Data: data}); err != nil {
		s.t.Fatal(err)
	}
	groups, err := s.history.Groups(ctx, jobs.Filter{})
	if err != nil || len(groups) != 1 {
		s.t.Fatalf("groups %v, %v", groups, err)
	}
	return stock{receipts[0].UUID, receipts[1].UUID, receipts[2].UUID, groups[0].Cause, payload}
}

// picture is all from which jobs run.
func (s *site) picture() string {
	s.t.Helper()
	var parts []string
	for _, query := range []string{"SELECT COALESCE(GROUP_CONCAT(id || ':' || available_at || payload), '') FROM jobs",
		"SELECT COALESCE(GROUP_CONCAT(id), '') FROM failed_jobs",
		"SELECT COALESCE(GROUP_CONCAT(name || COALESCE(cron, '') || COALESCE(data, '')), '') FROM cmsjobs_schedules"} {
		var text string
		if err := s.db.Get(&text, query); err != nil {
			s.t.Fatal(err)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n")
}

// way is one way to make a job run.
type way struct {
	name    string
	scope   access.Scope // the route's own
	jobType string       // the only one whose jobs it makes run; "" is any
	own     bool         // the service chooses the payload
	do      func(s *site, jobType string, st stock, who with) answer
}

func form(values ...string) string {
	v := url.Values{"sure": {"yes"}}
	for i := 0; i < len(values); i += 2 {
		v.Set(values[i], values[i+1])
	}
	return v.Encode()
}

func (s *site) submit(path, body string, who with) answer {
	s.t.Helper()
	return s.do("POST", path, body, who, header("Content-Type", "application/x-www-form-urlencoded"))
}

// enqueueRequest asks for a job of a type.
func enqueueRequest(jobType, payload string) string {
	return fmt.Sprintf(`{"type":%q,"payload":%s}`, jobType, payload)
}

func ways() []way {
	const operate, enqueue = access.Operate, access.Enqueue
	post := func(path string, body func(jobType string, st stock) string) func(*site, string, stock, with) answer {
		return func(s *site, jobType string, st stock, who with) answer {
			path := strings.NewReplacer("TYPE", jobType, "FAILED", st.failed, "ENDED", st.ended, "WAITING",
				st.waiting).Replace(path)
			text := body(jobType, st)
			if strings.HasPrefix(path, "/admin") {
				return s.submit(path, text, who)
			}
			return s.do("POST", path, text, who)
		}
	}
	nothing := func(string, stock) string { return "{}" }
	yes := func(string, stock) string { return form() }
	patch := func(body string) func(*site, string, stock, with) answer {
		return func(s *site, jobType string, st stock, who with) answer {
			return s.do("PATCH", "/api/v1/schedules/"+jobType, strings.ReplaceAll(body, "PAYLOAD", st.payload), who)
		}
	}
	return []way{
		{"enqueue", enqueue, "", false, post("/api/v1/jobs", func(k string, st stock) string {
			return enqueueRequest(k, st.payload)
		})},
		{"enqueue S1", enqueue, "", false, post("/api/jobs/enqueue", func(k string, st stock) string {
			return enqueueRequest(k, st.payload)
		})},
		{"batch", enqueue, "", false, post("/api/v1/jobs/batch", func(k string, st stock) string {
			return `{"jobs":[` + enqueueRequest(k, st.payload) + `]}`
		})},
		{"enqueue form", enqueue, "", false, post("/admin/enqueue", func(k string, st stock) string {
			return form("type", k, "more", st.payload)
		})},
		{"start form", enqueue, "", false, post("/admin/start", func(k string, st stock) string {
			return form("type", k, "payload", st.payload)
		})},
		{"edit form", operate, "", false, post("/admin/jobs/ENDED/edit", func(_ string, st stock) string {
			return form("payload", st.payload)
		})},

		{"requeue ended", operate, "", false, post("/api/v1/jobs/ENDED/requeue", nothing)},
		{"requeue ended S1", operate, "", false, post("/api/jobs/ENDED/requeue", nothing)},
		{"retry failed S2", operate, "", false, post("/api/admin/jobs/FAILED/retry", nothing)},
		{"requeue waiting", operate, "", false, post("/api/v1/jobs/WAITING/requeue", nothing)},
		{"retry failed", operate, "", false, post("/api/v1/failed/FAILED/retry", nothing)},
		{"again form", operate, "", false, post("/admin/jobs/FAILED/again", yes)},
		{"canary form", operate, "", false, post("/admin/failed/canary", func(_ string, st stock) string {
			return form("cause", st.cause)
		})},

		{"bulk retry", operate, "", false, post("/api/v1/jobs/bulk", func(string, stock) string {
			return `{"action":"retry","all":true}`
		})},
		{"bulk retry of a type", operate, "", false, post("/api/v1/jobs/bulk", func(k string, _ stock) string {
			return fmt.Sprintf(`{"action":"retry","type":[%q]}`, k)
		})},
		{"bulk run now", operate, "", false, post("/api/v1/jobs/bulk", func(string, stock) string {
			return `{"action":"run_now","all":true}`
		})},
		{"retry by ids", operate, "", false, post("/api/v1/failed/retry", func(_ string, st stock) string {
			return fmt.Sprintf(`{"ids":[%q]}`, st.failed)
		})},
		{"retry by cause", operate, "", false, post("/api/v1/failed/retry", func(_ string, st stock) string {
			return fmt.Sprintf(`{"cause":%q}`, st.cause)
		})},
		{"bulk form", operate, "", false, post("/admin/jobs/bulk", func(_ string, st stock) string {
			return form("action", "run_now", "ids", st.waiting)
		})},

		{"run a schedule", operate, "", false, post("/api/v1/schedules/TYPE/run", nothing)},
		{"schedule form", operate, "", false, post("/admin/schedules/TYPE/run", yes)},
		{"change a payload", operate, "", false, patch(`{"payload":PAYLOAD}`)},
		{"change a cron line", operate, "", false, patch(`{"cron":"* * * * *"}`)},
		{"reset a schedule", operate, "", true, patch(`{"reset":true}`)},
		{"pausing with a change", operate, "", false, patch(`{"paused":true,"cron":"* * * * *"}`)},
		{"change form", operate, "", false, post("/admin/schedules/TYPE", func(_ string, st stock) string {
			return form("do", "save", "cron", "* * * * *", "payload", st.payload)
		})},

		{"resend", operate, "mail.send", false, post("/api/v1/mail/1/resend", nothing)},
		{"resend form", operate, "mail.send", false, post("/admin/mail/1/resend", yes)},
		{"redeliver", operate, "webhook.deliver", true, post("/api/v1/deliveries/1/redeliver", nothing)},
		{"redeliver form", operate, "webhook.deliver", true, post("/admin/deliveries/1/redeliver", yes)},
		{"regenerate", operate, "media.processImage", true, post("/api/v1/media/regenerate", nothing)},
		{"regenerate form", operate, "media.processImage", true, post("/admin/media/regenerate", yes)},
		{"restore form", access.Admin, "backup.restore", true, post("/admin/backups/b.tar.zst/restore",
			func(string, stock) string { return form("part", "files", "typed", "cms-files") })},
		{"restore moment form", access.Admin, "backup.restore", true, post("/admin/backups/moment",
			func(string, stock) string { return form("at", "2026-11-21T12:00:00", "typed", "moment-1") })},
		{"restore moment", access.Admin, "backup.restore", true, post("/api/v1/backups/moments/2026-11-21T12:00:00",
			func(string, stock) string { return `{"confirm":"moment-1"}` })},
		{"restore post form", access.Admin, "backup.restore", true, post("/admin/backups/b.tar.zst/post",
			func(string, stock) string { return form("post", "12", "typed", "post-12") })},
		{"restore post", access.Admin, "backup.restore", true, post("/api/v1/backups/b.tar.zst/posts/12",
			func(string, stock) string { return `{"confirm":"post-12"}` })},
	}
}

// mayCause is the expectation. It is worded here, and asks nothing of the
// program: a rule that is taken out of it is missed. Jobs that the service makes
// nobody enqueues; those who answer for them may run them again.
func (s effectSite) mayCause(p access.Token, w way, jobType, sort string) bool {
	admin := p.Scopes.Has(access.Admin)
	if !p.Scopes.Has(w.scope) || !p.Scopes.Has(access.Enqueue) ||
		len(p.Types) > 0 && !slices.Contains(p.Types, jobType) {
		return false
	}
	if slices.Contains(serviceKinds, jobType) {
		fresh := w.scope == access.Enqueue || w.name == "edit form"
		return !fresh && (admin || jobType == "webhook.deliver" && p.Scopes.Has(access.Operate))
	}
	if !w.own && (sort == refused || sort == huge || sort == reserved && !admin) {
		return false
	}
	return admin || jobType != "cmsjobs.probe" && !slices.Contains(s.adminKinds, jobType) &&
		(len(s.offered) == 0 || slices.Contains(s.offered, jobType))
}

// TestAnEffectHappensExactlyIfItsEnqueueIsAllowed tries principals, ways, types
// and payloads at random, every way with every type and every sort of payload at
// least once. A job runs if, and only if, the caller may enqueue it as it is.
func TestAnEffectHappensExactlyIfItsEnqueueIsAllowed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	some := func(list []string) (chosen []string) {
		for _, x := range list {
			if random.IntN(2) == 0 {
				chosen = append(chosen, x)
			}
		}
		return chosen
	}
	sites := []effectSite{newEffectSite(t, func(*config) {}),
		newEffectSite(t, func(c *config) { c.AllowedTopics = []string{"cache.clear", "mail.send"} }),
		newEffectSite(t, func(c *config) { c.AdminKinds = []string{"mail.send"} })}
	allowed, refused, tried := 0, 0, 0
	for round := range len(sorts) + 1 {
		last := round == len(sorts) // an administrator's token for all types but the one
		for _, w := range ways() {
			for _, jobType := range allKinds {
				if w.jobType != "" && w.jobType != jobType || last && w.jobType == "" && jobType != "mail.send" {
					continue
				}
				s := sites[random.IntN(len(sites))]
				token := access.Token{Name: fmt.Sprintf("p%d", tried), Types: some(allKinds)}
				if tried++; random.IntN(2) == 0 {
					token.Types = nil
				}
				for _, scope := range []access.Scope{access.Read, access.Enqueue, access.Operate} {
					if random.IntN(4) > 0 {
						token.Scopes = append(token.Scopes, scope)
					}
				}
				if round == 0 || len(token.Scopes) == 0 || random.IntN(4) == 0 {
					token.Scopes = []access.Scopes{
						access.Operator.Scopes(), access.Administrator.Scopes()}[random.IntN(2)]
				}
				if last {
					token.Scopes, token.Types = access.Administrator.Scopes(), slices.DeleteFunc(slices.Clone(allKinds),
						func(other string) bool { return other == jobType })
				}
				_, secret, err := s.access.CreateToken(t.Context(), token)
				if err != nil {
					t.Fatal(err)
				}
				sort := fine
				if slices.Contains(publicKinds, jobType) && !last {
					sort = sorts[round]
				}
				if sort == huge && random.IntN(len(publicKinds)) > 0 {
					continue // a megabyte takes its time: one of the types is enough
				}
				may := s.mayCause(token, w, jobType, sort)
				st := s.prepare(jobType, sort)
				before := s.picture()
				a := w.do(s.site, jobType, st, bearer(secret))
				happened := s.picture() != before
				if happened != may {
					t.Errorf("seed %d: %s of %s (%s) by %q limited to %q: happened %t, allowed %t (%d %.300s)", seed,
						w.name, jobType, sort, token.Scopes, token.Types, happened, may, a.status, a.body)
				}
				if a.status >= 500 || !may && a.status < 300 && !strings.Contains(string(a.body), `"left_out":1`) {
					t.Errorf("seed %d: %s of %s (%s), allowed %t: %d %.300s", seed, w.name, jobType, sort, may,
						a.status, a.body)
				}
				if may {
					allowed++
				} else {
					refused++
				}
			}
		}
	}
	if allowed < 100 || refused < 100 {
		t.Errorf("%d effects were allowed and %d refused: the test tries too few of them", allowed, refused)
	}
	t.Logf("%d effects allowed, %d refused", allowed, refused)
}

// One round, or a queue that goes on, lets any job run that is due: a token that
// is limited to types may not ask for it, one that may operate may.
func TestWorkGoesOnForNobodyWhoIsLimitedToKinds(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	limited, free := s.limitedToken(access.Operator.Scopes(), "cache.clear"), s.limitedToken(access.Operator.Scopes())
	for _, way := range []string{"/api/cron/tick", "/api/v1/cron/tick", "/api/v1/queues/cmsjobs/continue",
		"/admin/queues/cmsjobs/continue"} {
		if err := s.history.Pause(t.Context(), "cmsjobs", "test"); err != nil {
			t.Fatal(err)
		}
		ask := func(secret string) answer {
			if strings.HasPrefix(way, "/admin") {
				return s.submit(way, form(), bearer(secret))
			}
			return s.do("POST", way, "{}", bearer(secret))
		}
		if a := ask(limited); a.status != http.StatusForbidden ||
			!strings.Contains(string(a.body), "would let others run") {
			t.Errorf("%s by a limited token: %d %s", way, a.status, a.body)
		}
		if was, err := s.history.Continue(t.Context(), "cmsjobs"); err != nil || !was {
			t.Errorf("%s by a limited token let the queue go on: %t, %v", way, !was, err)
		}
		if a := ask(free); a.status >= 400 {
			t.Errorf("%s by a token without a limit: %d %s", way, a.status, a.body)
		}
	}
}

// limitedToken is the secret of a new token; without types it has no limit.
func (s *site) limitedToken(scopes access.Scopes, jobTypes ...string) string {
	s.t.Helper()
	_, secret, err := s.access.CreateToken(s.t.Context(), access.Token{Name: fmt.Sprint("limited", jobTypes),
		Scopes: scopes, Types: jobTypes})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}
