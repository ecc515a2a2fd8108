package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// The interfaces below are what this package needs of the other rooms. The
// store implements those that speak of jobs, queues and workers; wire.go in
// cmd/cmsjobs adapts the handlers to the rest. A nil one answers 404 with a
// problem that names the part that is not configured.
//
// Common rules: an id that nobody has is an error that wraps jobs.ErrNotFound;
// an action that the state of things forbids wraps jobs.ErrConflict; times are
// UTC; lists are newest first unless said. Methods that change something take
// who did it from the caller only where the table keeps it.

// Ledger shows jobs wherever their rows lie: jobs, failed_jobs, the history.
type Ledger interface {
	// Job finds a waiting, running, finished or failed job by its UUID, or by
	// its row's number in the jobs table (then in failed_jobs, then history).
	Job(ctx context.Context, id string) (jobs.Record, error)
	// Jobs lists; no States in the filter means all of them.
	Jobs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.Record], error)
	// Count counts what Jobs would list.
	Count(ctx context.Context, f jobs.Filter) (int64, error)
	Stats(ctx context.Context) (jobs.Stats, error)
}

// JobMutator changes jobs. Each method works on at most limit jobs, those that
// were enqueued (or failed) first before others, and says how many it changed,
// so that a caller can go through any number in steps; limit 0 means 1000.
type JobMutator interface {
	// Cancel ends jobs that wait (they leave the table, a run "cancelled" is
	// recorded) and tells the workers of running ones to stop.
	Cancel(ctx context.Context, f jobs.Filter, limit int) (int64, error)
	// Retry puts failed jobs back into their queues, due now, attempts 0,
	// with the same UUID.
	Retry(ctx context.Context, f jobs.Filter, limit int) (int64, error)
	// Delete deletes failed jobs.
	Delete(ctx context.Context, f jobs.Filter, limit int) (int64, error)
	// RunNow makes waiting jobs due now.
	RunNow(ctx context.Context, f jobs.Filter, limit int) (int64, error)
}

// History shows runs and what handlers said in them.
type History interface {
	Runs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.RunRecord], error)
	// Log returns the log lines of a job's runs, oldest first, at most limit.
	Log(ctx context.Context, uuid string, limit int) ([]jobs.LogLine, error)
	// Groups are the failed jobs by cause, most first.
	Groups(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, error)
	// Throughput counts ended runs in steps of equal length, oldest first.
	Throughput(ctx context.Context, since time.Time, step time.Duration) ([]jobs.Throughput, error)
}

// Queues pauses and continues queues for all workers.
type Queues interface {
	Pause(ctx context.Context, queue, by string) error
	// Continue says whether the queue was paused.
	Continue(ctx context.Context, queue string) (was bool, err error)
}

// Workers lists workers and tells them to stop.
type Workers interface {
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
	// Stop makes one worker finish what it runs and exit; known is false when
	// there is none with this id.
	Stop(ctx context.Context, id string) (known bool, err error)
	// Restart makes all of them do so; their supervisor starts them anew.
	Restart(ctx context.Context) error
}

// Schedules shows and changes schedule entries.
type Schedules interface {
	Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error)
	// RunSchedule enqueues the entry's job now, apart from its ticks.
	RunSchedule(ctx context.Context, name string) (jobs.Receipt, error)
	// ChangeSchedule refuses a cron line that cannot be read.
	ChangeSchedule(ctx context.Context, name string, change jobs.ScheduleChange) error
	Ticks(ctx context.Context, name string, p jobs.Page) (jobs.List[jobs.TickRecord], error)
}

// Ticker does one round of what the service does by itself: enqueues due
// ticks, runs due jobs until none is left or ctx ends (POST /api/cron/tick).
type Ticker interface {
	Tick(ctx context.Context) (ops.TickReport, error)
}

// ErrUnavailable marks the error of a place that cannot be asked: a bucket whose
// server is down, say. The answer is 503, with the error's text.
var ErrUnavailable = errors.New("not every place of the backups can be read")

// Backups shows backup archives. Making one is enqueuing backup.generate.
// Errors that wrap ErrAway name the place and why it does not answer.
type Backups interface {
	// Backups are those at all places. Where some are away, the error wraps
	// ErrAway and the list has what the others hold.
	Backups(ctx context.Context) ([]Backup, error)
	OpenBackup(ctx context.Context, id string) (io.ReadCloser, Backup, error)
	DeleteBackup(ctx context.Context, id string) error
}

// Backup is one archive.
type Backup struct {
	ID        string    `json:"id"` // its file name
	Size      int64     `json:"size"`
	CreatedAt time.Time `json:"created_at"`
	// Status is complete, partial or failed; a backup whose newest proof failed
	// is failed.
	Status string `json:"status"`
	// Usable is true when a restore takes it without being told to: it is
	// complete, proven or not yet due for a proof, and of a known origin.
	Usable bool `json:"usable"`
	// Origin is own, trusted, unknown or altered.
	Origin      string     `json:"origin"`
	Database    bool       `json:"database"`
	Encrypted   bool       `json:"encrypted"`
	Destination string     `json:"destination"`
	VerifiedAt  *time.Time `json:"verified_at,omitempty"`
	Verdict     string     `json:"verdict,omitempty"` // what verification found
	// KeptUntil is when retention deletes it, if one backup of everything is made
	// each day; absent when it does not. Kept says what keeps it, "" when nothing does.
	KeptUntil *time.Time `json:"kept_until,omitempty"`
	Kept      string     `json:"kept,omitempty"`
	Tables    int        `json:"tables"`
	Files     int        `json:"files"`
}

// MailLog shows mail that was sent.
type MailLog interface {
	Mails(ctx context.Context, q MailQuery, p jobs.Page) (jobs.List[Mail], error)
	Mail(ctx context.Context, id string) (Mail, error)
	// MailAgain is the job that sends it again, to its one recipient.
	MailAgain(ctx context.Context, id string) (jobs.Spec, error)
}

// MailQuery chooses mails; empty fields choose all.
type MailQuery struct {
	Status string // one of mailStates
	Text   string // in recipient or subject
}

// Mail is one message to one recipient.
type Mail struct {
	ID        string    `json:"id"`
	UUID      string    `json:"job"`
	To        string    `json:"to"`
	From      string    `json:"from"`
	Subject   string    `json:"subject"`
	Template  string    `json:"template,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	Status    string    `json:"status"`
	Answer    string    `json:"answer,omitempty"` // the server's last words
	Attempts  int       `json:"attempts"`
	At        time.Time `json:"at"`
	// Kept says that its body was kept, so that it can be shown and sent again.
	Kept bool `json:"kept"`
	// Of Mail only:
	HTML      string    `json:"html,omitempty"` // where the body was kept
	PlainText string    `json:"text,omitempty"`
	Problem   string    `json:"problem,omitempty"` // why a kept body cannot be shown
	Tries     []MailTry `json:"tries,omitempty"`   // oldest first
	Others    []Mail    `json:"others,omitempty"`  // its other recipients
}

// MailTry is one try to hand a mail over.
type MailTry struct {
	At         time.Time `json:"at"`
	Attempt    int       `json:"attempt"`
	Status     string    `json:"status"`
	Server     string    `json:"server,omitempty"`
	Code       int       `json:"code,omitempty"` // of SMTP
	Answer     string    `json:"answer,omitempty"`
	DurationMS int64     `json:"duration_ms"`
}

// MailTemplates shows what mails are made from.
type MailTemplates interface {
	Templates(ctx context.Context) ([]MailTemplate, error)
	// PreviewTemplate fills one in with its sample data. One that is not there
	// is jobs.ErrNotFound; one that cannot be filled in has a Problem.
	PreviewTemplate(ctx context.Context, name, locale string) (TemplatePreview, error)
}

// MailTemplate is one template.
type MailTemplate struct {
	Name    string
	Origin  string   // "own" (shipped), "folder" (the operator's), "cms"
	Locales []string // that have a text of their own
}

// TemplatePreview is a template filled in.
type TemplatePreview struct {
	Subject, HTML, Text string
	Sample              json.RawMessage // the data that it was filled in with
	Problem             string
}

// Suppressions are the addresses that get no mail.
type Suppressions interface {
	Suppressions(ctx context.Context, p jobs.Page) (jobs.List[Suppression], error)
	Suppress(ctx context.Context, s Suppression) error
	Unsuppress(ctx context.Context, address string) error
}

// Suppression is one address that gets no mail, and why.
type Suppression struct {
	Address   string     `json:"address"`
	Reason    string     `json:"reason"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// Webhooks shows and changes subscriptions to events.
type Webhooks interface {
	Webhooks(ctx context.Context) ([]Webhook, error)
	// SaveWebhook adds one (ID "") or changes it; the answer carries the ID
	// and, for a new one only, the secret.
	SaveWebhook(ctx context.Context, w Webhook) (Webhook, error)
	DeleteWebhook(ctx context.Context, id string) error
	Deliveries(ctx context.Context, webhook string, p jobs.Page) (jobs.List[Delivery], error)
	// Redeliver enqueues a delivery anew, under its old message id.
	Redeliver(ctx context.Context, delivery string) (jobs.Receipt, error)
}

// Webhook is a subscription.
type Webhook struct {
	ID      string   `json:"id"`
	URL     string   `json:"url"`
	Events  []string `json:"events"` // empty means all
	Enabled bool     `json:"enabled"`
	Secret  string   `json:"secret,omitempty"` // only in the answer that made it
	Note    string   `json:"note,omitempty"`
}

// Delivery is one sending of an event.
type Delivery struct {
	ID      string    `json:"id"`
	Webhook string    `json:"webhook"`
	Event   string    `json:"event"`
	At      time.Time `json:"at"`
	Status  int       `json:"status"` // of HTTP; 0 when there was no answer
	Answer  string    `json:"answer,omitempty"`
	Request string    `json:"request,omitempty"` // what was sent, cut
	Attempt int       `json:"attempt"`
}

// Media shows what is missing among the thumbnails.
type Media interface {
	MediaStatus(ctx context.Context) (MediaStatus, error)
	// Regenerate enqueues thumbnails for all pictures, or only the missing ones.
	Regenerate(ctx context.Context, onlyMissing bool) (int, error)
}

// MediaStatus counts pictures.
type MediaStatus struct {
	Pictures int64    `json:"pictures"`
	Missing  int64    `json:"missing"`
	Lost     int64    `json:"lost"`               // the original is not on disk
	Examples []string `json:"examples,omitempty"` // some that are missing
}

// Analytics shows rolled-up visits.
type Analytics interface {
	Report(ctx context.Context, q AnalyticsQuery) (AnalyticsReport, error)
}

// AnalyticsQuery asks for days, both included, as "2006-01-02" in the CMS's
// zone, and for the top entries of each dimension.
type AnalyticsQuery struct {
	Since, Until string
	Site         string
	Limit        int
}

// AnalyticsReport is figures by day and by dimension (page, referrer, device,
// browser, system, country, campaign, entry, exit).
type AnalyticsReport struct {
	Total      AnalyticsTotal             `json:"total"`
	Days       []AnalyticsDay             `json:"days"`
	Dimensions map[string][]AnalyticsItem `json:"dimensions"`
}

// AnalyticsTotal is the whole range. BounceRate is percent of visits with one
// view, VisitSeconds how long visits lasted on average.
type AnalyticsTotal struct {
	Views        int64   `json:"views"`
	Visitors     int64   `json:"visitors"`
	Visits       int64   `json:"visits"`
	Bounces      int64   `json:"bounces"`
	BounceRate   float64 `json:"bounceRate"`
	VisitSeconds int64   `json:"visitSeconds"`
}

// AnalyticsDay is one calendar day of the CMS.
type AnalyticsDay struct {
	Day      string `json:"day"`
	Views    int64  `json:"views"`
	Visitors int64  `json:"visitors"`
	Visits   int64  `json:"visits"`
	Bounces  int64  `json:"bounces"`

	BounceRate   float64 `json:"bounceRate"`
	VisitSeconds int64   `json:"visitSeconds"`
}

// AnalyticsItem is one value of a dimension. A page has PageSeconds, how long
// it was to the next view on average; an exit page ExitRate, how many percent
// of its views ended a visit; the others BounceRate and VisitSeconds.
type AnalyticsItem struct {
	Name     string `json:"name"`
	Views    int64  `json:"views"`
	Visitors int64  `json:"visitors"`
	Visits   int64  `json:"visits"`

	BounceRate   float64 `json:"bounceRate"`
	VisitSeconds int64   `json:"visitSeconds"`
	PageSeconds  int64   `json:"pageSeconds"`
	ExitRate     float64 `json:"exitRate"`
}

// Sitemap shows the files of the sitemap and what IndexNow was told.
type Sitemap interface {
	SitemapStatus(ctx context.Context) (SitemapStatus, error)
}

// SitemapStatus is the map as the last run published it. Files are the first
// 200 of FileCount, the index before all others.
type SitemapStatus struct {
	Target      string        `json:"target,omitempty"` // folder:PATH, bucket:NAME, cache:KEY
	FileCount   int           `json:"fileCount"`
	URLs        int           `json:"urls"`
	PublishedAt time.Time     `json:"publishedAt,omitzero"`
	Files       []SitemapFile `json:"files"`
	Submissions []Submission  `json:"submissions"`
}

// SitemapFile is one file of the sitemap. Modified is the newest change of what
// it lists, zero where that is not known.
type SitemapFile struct {
	Name     string    `json:"name"`
	URLs     int       `json:"urls"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
}

// Submission is one call of IndexNow.
type Submission struct {
	At     time.Time `json:"at"`
	Host   string    `json:"host"`
	URLs   int       `json:"urls"`
	Status int       `json:"status"` // of HTTP; 0 when nothing was sent
	Failed bool      `json:"failed,omitempty"`
	Note   string    `json:"note,omitempty"`
}

// StorageUsage shows what takes room on disk and in the database: caches, logs,
// tables.
type StorageUsage interface {
	StorageUsage(ctx context.Context) ([]UsageItem, error)
}

// SizeHistory is a Growth that knows how sizes were on other days.
type SizeHistory interface {
	// SizesSince lists days, oldest first; days on which nothing was measured are
	// not among them.
	SizesSince(ctx context.Context, since time.Time) ([]SizeDay, error)
}

// SizeDay is how much room folders and tables took on a day.
type SizeDay struct {
	Day          string // 2006-01-02
	Disk, Tables int64
}

// UsageItem is one folder or table and its size.
type UsageItem struct {
	Name  string `json:"name"`
	Class string `json:"part"` // "cache", "logs", "table", "media", "backup"
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"rows"` // or files
}

// Setting is one value of the configuration and where it came from. Secrets
// arrive masked.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Secret bool   `json:"secret"`
}

// InlineExecutor runs one job at once, in this process, and returns its result. It is
// used where jobs are disabled.
type InlineExecutor interface {
	Do(ctx context.Context, n jobs.Spec) (json.RawMessage, error)
}
