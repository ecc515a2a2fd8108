package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// Ctx ends with the request.
func (r *Request) Ctx() context.Context { return r.Request().Context() }

// Now is the server's clock.
func (r *Request) Now() time.Time { return r.server.cfg.Now() }

// Log is the server's logger.
func (r *Request) Log() *slog.Logger { return r.server.cfg.Log }

// Caller is the principal that asks.
func (r *Request) Caller() access.Principal { return who(r.Context) }

// Enqueuer puts jobs into their queues.
func (r *Request) Enqueuer() jobs.Enqueuer { return r.server.cfg.Enqueuer }

// Ledger shows jobs.
func (r *Request) Ledger() Ledger { return r.server.cfg.Ledger }

// Registry has the types of jobs.
func (r *Request) Registry() *jobs.Registry { return r.server.cfg.Registry }

// Known says whether a name is a type here.
func (r *Request) Known(jobType string) bool { return r.server.known(jobType) }

// History shows runs; nil where there is none.
func (r *Request) History() History { return r.server.cfg.History }

// Gate knows credentials, sessions and the audit log.
func (r *Request) Gate() *access.Authenticator { return r.server.cfg.Gate }

// Settings are the configuration's values, secrets masked; nil where there are none.
func (r *Request) Settings() []Setting { return r.server.settings() }

// Metrics is what /metrics shows.
func (r *Request) Metrics() *prometheus.Registry { return r.server.cfg.Metrics }

// Version is the program's.
func (r *Request) Version() string { return r.server.cfg.Version }

// Features are all that the server has.
func (r *Request) Features() []Feature { return r.server.cfg.Features }

// AuditedActions are the names of actions that the audit log can have.
func (r *Request) AuditedActions() []string { return r.server.auditedActions() }

// PageLimit is the longest list that one answer has.
func (r *Request) PageLimit() int { return r.server.cfg.PageLimit }

// --- What was asked ---

// ID is :id of the path: a UUID, a ULID or a number.
func (r *Request) ID() (string, error) { return idParam(r.Context) }

// NameParam is a parameter of the path that may hold any character.
func (r *Request) NameParam(name string) (string, error) { return nameParam(r.Context, name) }

// Number is a parameter of the query, from 0.
func (r *Request) Number(name string, fallback int) (int, error) {
	return number(r.Context, name, fallback)
}

// Words are a form's value, split at commas and spaces.
func (r *Request) Words(field string) []string {
	return strings.FieldsFunc(r.FormValue(field), func(c rune) bool { return c == ',' || c == ' ' })
}

// ListPage is the part of a list that the query asks for. A limit above the
// configured one is cut to it; the answer says which was used.
func (r *Request) ListPage() (jobs.Page, error) { return r.server.pageOf(r.Context) }

// WrittenFilter is the filter of the query as it was written.
func (r *Request) WrittenFilter() ops.Filter { return written(r.Context) }

// Filter is the filter of the query. A text to search for needs the scope to
// operate: what is masked would be found letter by letter.
func (r *Request) Filter() (jobs.Filter, error) { return r.server.filter(r.Context) }

// BackTo is the page of ours that a form came from.
func (r *Request) BackTo(fallback string) string { return local(r.FormValue("back"), fallback) }

// Body is the JSON body as it came; see [CheckBody] and [DecodeBody].
func (r *Request) Body() ([]byte, error) { return rawBody(r.Context) }

// Decode reads the JSON body strictly: an unknown field is an error.
func (r *Request) Decode(into any) error { return body(r.Context, into) }

// OnID does something to what :id of the path names. doing says what, with a
// place for the id, where it fails.
func OnID[T any](r *Request, doing string, do func(context.Context, string) (T, error)) (string, T, error) {
	return onID(r.Context, doing, do)
}

// --- Rights and the audit log ---

// MayRunType refuses unless the caller may make jobs of a type run, with a payload
// that the service itself chooses.
func (r *Request) MayRunType(jobType string) error { return r.server.mayRunKind(r.Context, jobType) }

// MayRun refuses unless the caller may make a job run with this payload.
func (r *Request) MayRun(jobType string, data json.RawMessage) error {
	return r.server.mayRun(r.Context, jobType, data)
}

// May says whether the caller has a scope, or a rule of the configuration that
// stands for it.
func (r *Request) May(scope access.Scope) bool {
	return r.server.may(r.Caller(), Route{Scope: scope, Managed: scope != access.Admin})
}

// MayEnqueue refuses a new job of a type that the caller may not make with this
// payload.
func (r *Request) MayEnqueue(jobType string, data json.RawMessage) error {
	return denied(r.server.effects.MayEnqueue(r.Caller(), jobType, data))
}

// MayRunNew is MayRun with a payload that the caller writes now.
func (r *Request) MayRunNew(jobType string, data json.RawMessage) error {
	return denied(r.server.effects.MayRunNew(r.Caller(), jobType, data))
}

// MayRunAgain is MayRun for a job that is there: a row, whichever program wrote it.
func (r *Request) MayRunAgain(job jobs.Record) error { return r.server.mayRunAgain(r.Context, job) }

// MayWork refuses unless the caller may make jobs of any type run.
func (r *Request) MayWork() error { return denied(r.server.effects.MayWork(r.Caller())) }

// Runnable narrows a filter to the jobs that the caller may make run.
func (r *Request) Runnable(f jobs.Filter) (RunnableJobs, error) {
	return r.server.runnable(r.Context, f)
}

// Audit notes for the audit log what the request is about.
func (r *Request) Audit(target, detail string) { setAuditTarget(r.Context, target, detail) }

// AuditNow writes to the audit log at once: for a request that changes nothing
// and must be known all the same.
func (r *Request) AuditNow(action, target string) { r.server.auditEntry(r.Context, action, target) }

// --- Answers of the API ---

// View shows things to the caller, secrets masked: whatever a job, a server or a
// person wrote goes through it on its way out.
func (r *Request) View() ops.Viewer { return r.server.viewer(r.Context) }

// AnswerList answers with a page of a list.
func AnswerList[T any](r *Request, what string, view func(T) T, ask func(jobs.Page) (jobs.List[T], error)) error {
	p, err := r.ListPage()
	if err != nil {
		return err
	}
	list, err := ask(p)
	if err != nil {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return r.JSON(http.StatusOK, ops.Listed(list, p, view))
}

// AnswerJob answers with the job that does again what id did.
func (r *Request) AnswerJob(id, jobType string, receipt jobs.Receipt) error {
	answer := ops.EnqueuedView(jobs.Spec{Type: jobType}, receipt, r.Now())
	r.Audit(id, "as "+receipt.UUID)
	return r.JSON(http.StatusCreated, answer)
}

// Refuse refuses a request. The form is translated where people read it.
func Refuse(status int, format string, args ...any) error { return httpError(status, format, args...) }

// RefuseField is Refuse about one field.
func RefuseField(status int, field, format string, args ...any) error {
	return fieldError(status, field, format, args...)
}

// NotConfigured answers for a part that this installation lacks.
func NotConfigured(part string) error { return notConfigured(part) }

// --- Pages ---

// Printer writes texts in the caller's language.
func (r *Request) Printer() locale.Printer { return r.server.printer(r.Context) }

// Text is a text in the caller's language.
func (r *Request) Text(key string, args ...any) string { return r.Printer().Text(key, args...) }

// PageView is a page to show: the template page_NAME.html, filled in with Data.
type PageView struct {
	Name  string // of the template, and of the title's text: NAME.title
	Data  any
	Live  string // when the page's live part loads itself again, in htmx's words
	Ready bool   // false while figures are awaited: then it asks again soon
	// Status of HTTP; 0 is 200.
	Status int
	// Title of the page; "" is the text NAME.title.
	Title string
	// Wide pages use the whole window when nobody is signed in, too.
	Wide bool
	// Here is the page's address where the request's is another; "" is the request's.
	Here string
}

// Show answers with a page.
func (r *Request) Show(p PageView) error {
	v := r.server.pageView(r.Context, p.Name, p.Name+".title", p.Data)
	if v.Live = p.Live; !p.Ready {
		v.Live, v.Pending = refreshSoon, true
	}
	if p.Here != "" {
		v.Here = p.Here
	}
	v.Title, v.Wide = cmp.Or(p.Title, v.Title), p.Wide
	return r.server.write(r.Context, max(p.Status, http.StatusOK), p.Name, v)
}

// BackShowing is Back with a link to what came of it.
func (r *Request) BackShowing(to, shown, key string, args ...any) error {
	return r.server.backSaying(r.Context, to, r.Text(key, args...)+"\n"+shown)
}

// Base is the path below which browsers reach this server, "" for its root.
func (r *Request) Base() string { return r.server.cfg.Base }

// Keep keeps a choice of how pages look in the browser.
func (r *Request) Keep(name, value string, age time.Duration) {
	r.server.keep(r.Context, name, value, age)
}

// Back sends the browser to a page, with a notice there.
func (r *Request) Back(to, key string, args ...any) error {
	return r.server.back(r.Context, to, key, args...)
}

// BackUndone is Back after nothing was done.
func (r *Request) BackUndone(to, key string) error { return r.server.backUndone(r.Context, to, key) }

// Follow sends the browser to a page that follows a job until its end.
func (r *Request) Follow(page string, job jobs.Receipt) error {
	return r.Redirect(http.StatusSeeOther, Following(page, job.UUID))
}

// Sure says whether the person said yes; where not, it asks them. typed must be
// written by hand to say yes; "" asks for a click only.
func (r *Request) Sure(text, typed string, boxes ...Box) (bool, error) {
	return r.server.sureOf(r.Context, question{Text: text, Typed: typed, Boxes: boxes})
}

// SureOfPlan is Sure for a question that says what will happen.
func (r *Request) SureOfPlan(text, typed string, plan []Planned, boxes ...Box) (bool, error) {
	return r.server.sureOf(r.Context, question{Text: text, Typed: typed, Plan: plan, Boxes: boxes})
}

// Refusal is what to tell a person of an error that a form's values caused.
// ours is true where the service itself failed.
func (r *Request) Refusal(err error) (status int, text string, ours bool) {
	p := r.server.problemOf(err)
	return p.Status, p.in(r.Printer()), p.Status >= http.StatusInternalServerError
}

// Problem is what the answer to an error says.
func (r *Request) Problem(err error) Problem { return *r.server.problemOf(err) }

// Cached answers from what is kept of an expensive answer, or asks. ready is
// false when no answer came in time: a page shows itself without it and asks
// again soon.
func Cached[T any](r *Request, key string, ask func(context.Context) (T, error)) (value T, ready bool, err error) {
	return answers.Ask(r.Ctx(), r.server.answers, key, ask)
}

// Stats are the queue's figures. No page can do without: it waits for the first
// ones.
func (r *Request) Stats() (jobs.Stats, error) { return Stats(r.Ctx(), r.server.cfg, r.server.answers) }

// Stats are the queue's figures, from what is kept or from the ledger.
func Stats(ctx context.Context, c Config, cache *answers.Cache) (jobs.Stats, error) {
	return answers.Await(ctx, cache, "stats", c.Ledger.Stats)
}

// FailureGroups are failed jobs by cause; ready is as of [Cached].
func (r *Request) FailureGroups(f jobs.Filter) (groups []jobs.FailureGroup, ready bool, err error) {
	key, ask := failureGroups(r.server.cfg, f)
	return Cached(r, key, ask)
}

// FailureGroups are failed jobs by cause, from what is kept or from the history.
func FailureGroups(ctx context.Context, c Config, cache *answers.Cache, f jobs.Filter) ([]jobs.FailureGroup, error) {
	key, ask := failureGroups(c, f)
	return answers.Await(ctx, cache, key, ask)
}

// failureGroups counts a filter's moments in whole minutes, so that asking again
// asks for the same.
func failureGroups(c Config, f jobs.Filter) (key string, ask func(context.Context) ([]jobs.FailureGroup, error)) {
	f.Since, f.Until = f.Since.Truncate(time.Minute), f.Until.Truncate(time.Minute)
	return fmt.Sprintf("groups %+v", f), func(ctx context.Context) ([]jobs.FailureGroup, error) {
		return c.History.Groups(ctx, f)
	}
}

// Affected says how many things a request changed.
type Affected struct {
	Changed int64 `json:"changed"`
}
