package demo

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/publish"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Days ago on which something happened that people want to see.
const (
	partialDay  = 12 // files could not be read
	limitedDay  = 8  // IndexNow asked for less
	downDay     = 6  // the mail server was down for an afternoon
	orderDay    = 4  // a receiver of webhooks was down
	importedDay = 3  // pictures of a format that nobody can read
)

func (p *past) daysAgo(t time.Time) int { return int(p.now.Sub(t).Hours() / 24) }

// usual is how a run of a scheduled type went.
func (p *past) usual(jobType string, tick time.Time) pastRun {
	ago := p.daysAgo(tick)
	x := pastRun{outcome: jobs.Completed, took: p.about(30 * time.Millisecond), wait: p.about(12 * time.Millisecond)}
	switch jobType {
	case sitemap.Generate.Name:
		x.took, x.result = p.about(340*time.Millisecond), p.mapOf(ago)
	case backup.Generate.Name:
		x.took = p.about(4200 * time.Millisecond)
		x.result = p.backup(tick, ago, x.took)
		if ago < p.site.fullDisk {
			x.outcome, x.result, x.fault = jobs.Failed, nil, "destination local: no space left on device"
		}
	case cache.LogsCleanup.Name:
		x.took = p.about(90 * time.Millisecond)
		x.result = cache.Report{Files: int64(p.random.IntN(3)), Bytes: int64(p.random.IntN(400 << 10))}
	case cache.ClearExpired.Name:
		x.result = cache.Report{Store: "file", Files: int64(p.random.IntN(12)), Bytes: int64(p.random.IntN(60 << 10))}
	case analytics.Process.Name:
		x.took = p.about(150 * time.Millisecond)
		x.result = analytics.Processed{Days: 1, Views: int64(2 + p.random.IntN(30))}
	}
	return x
}

// mapOf is a sitemap of that day: the site had fewer pages.
func (p *past) mapOf(ago int) sitemap.Result {
	urls := 412 - 2*ago
	return sitemap.Result{Index: p.site.url() + "/sitemap.xml", Target: "public", URLs: urls, Files: 6,
		Bytes: int64(urls) * 190, DurationMS: p.about(300 * time.Millisecond).Milliseconds()}
}

func (p *past) backup(tick time.Time, ago int, took time.Duration) catalog.Report {
	b := catalog.Report{ID: tick.UTC().Format("20060102-150405") + "-full", Name: "full", By: "schedule",
		Source: "schedule", Status: manifest.Complete, Started: tick, Finished: tick.Add(took),
		Size:   int64(1800-12*ago) << 10,
		Tables: 32, Rows: int64(5200 - 31*ago), Files: int64(96 - ago), FileBytes: int64(1400-9*ago) << 10,
		Outcomes: []catalog.Outcome{{Destination: "local", Location: "storage/app/cmsjobs-backups"}}}
	if p.site.shop && ago == partialDay {
		b.Status, b.Files = manifest.Partial, b.Files-2
		b.FilesError = "2 files could not be read: open public/storage/photos/harbour-3.jpg: permission denied"
	}
	return b
}

// ofEditors are the runs of what people did: they publish, upload, and get mail, most of
// it by day.
func (p *past) ofEditors() (runs []pastRun) {
	for ago := pastDays; ago >= 0; ago-- {
		day := p.now.AddDate(0, 0, -ago).UTC().Truncate(24 * time.Hour)
		busy := p.site.busy
		if w := day.Weekday(); w == time.Saturday || w == time.Sunday {
			busy *= 0.4
		}
		some := func(n int) int { return int(busy * float64(1+p.random.IntN(n))) }
		for range some(3) {
			runs = append(runs, p.published(p.byDay(day), ago)...)
		}
		for range some(8) {
			n := 1 + p.random.IntN(60)
			url := fmt.Sprintf("photos/upload-%d.jpg", n)
			runs = append(runs, p.done(p.byDay(day), media.ProcessImage.New(media.ProcessImagePayload{}),
				210*time.Millisecond, media.Outcome{ID: fmt.Sprint(n), URL: url, Made: 4}))
		}
		for range some(22) {
			runs = append(runs, p.done(p.byDay(day), mail.Send.New(mail.SendPayload{}), 160*time.Millisecond,
				mail.Result{Driver: "smtp", Host: "mail.demo.example",
					MessageID:  fmt.Sprintf("<%d.%d@demo.example>", ago, p.random.IntN(1e6)),
					Recipients: map[mail.Status]int{mail.Accepted: 1}}))
		}
		for range some(6) {
			runs = append(runs, p.done(p.byDay(day), webhook.Deliver.New(webhook.DeliverPayload{}), 90*time.Millisecond,
				webhook.Result{Status: 200, Answer: "received",
					DurationMS: p.about(80 * time.Millisecond).Milliseconds()}))
		}
	}
	return runs
}

// published are the runs after a post was published: it, the sitemap, the search engines.
func (p *past) published(at time.Time, ago int) []pastRun {
	n := 1 + p.random.IntN(300)
	tell := p.done(at.Add(7*time.Second), sitemap.IndexNow.New(sitemap.IndexNowPayload{}), 240*time.Millisecond,
		sitemap.Submission{Mode: "bulk", Changed: 1 + p.random.IntN(4), Calls: 1, Status: 200 + 2*p.random.IntN(2),
			Sitemap: p.site.url() + "/sitemap.xml"})
	told := []pastRun{tell}
	if ago == limitedDay {
		first := tell
		first.outcome, first.result, first.uuid = jobs.Retried, nil, uuid.NewString()
		first.fault = "IndexNow answered 429 Too Many Requests; it asks for a pause of 15 minutes"
		tell.uuid, tell.attempt, tell.ended = first.uuid, 2, tell.ended.Add(15*time.Minute)
		told = []pastRun{first, tell}
	}
	return append([]pastRun{
		p.done(at, publish.Publish.New(publish.Payload{}), 60*time.Millisecond, publish.Result{Outcome: "published",
			Model: "posts", ID: fmt.Sprint(n), URL: fmt.Sprintf("%s/blog/post-%d", p.site.url(), n)}),
		p.done(at.Add(6*time.Second), sitemap.Generate.New(sitemap.GeneratePayload{}), 320*time.Millisecond,
			p.mapOf(ago)),
	}, told...)
}

// goneReader is an address that mails cannot reach.
const goneReader = "old@customer.example"

// downReceiver is where webhooks went that failed. It is on this machine, so that a job
// that is retried leaves it as little as the others do.
const downReceiver = "http://127.0.0.1:9/hooks/orders"

// faults are the failures of the shop: a mail server and a receiver that were down,
// pictures, an address. The mails can be sent now.
func (p *past) faults() (runs []pastRun) {
	add := func(ago, n int, spec jobs.Spec, data any, took time.Duration, faults ...string) {
		day := p.now.AddDate(0, 0, -ago).UTC().Truncate(24 * time.Hour)
		for i := range n {
			x := p.done(day.Add(14*time.Hour+time.Duration(i)*7*time.Minute), spec, took, nil)
			x.spec.Data, _ = json.Marshal(data) // maps of texts
			x.outcome, x.fault = jobs.Failed, faults[i%len(faults)]
			runs = append(runs, x)
		}
	}
	to := func(address, subject string) map[string]any {
		return map[string]any{"to": address, "subject": subject, "body": "<p>It is on its way.</p>"}
	}
	if !p.site.shop {
		return nil
	}
	add(downDay, 9, mail.Send.New(mail.SendPayload{}), to("reader@demo.example", "Your order 1039"), 5*time.Second,
		"mail.demo.example:587 answered 421 4.3.2 service not available, try again later")
	add(importedDay, 4, media.ProcessImage.New(media.ProcessImagePayload{}), map[string]any{"mediaFileId": 71,
		"filePath": "photos/scan-71.psd", "mimeType": "image/vnd.adobe.photoshop"}, 40*time.Millisecond,
		"photos/scan-71.psd cannot be read as a picture: unknown format")
	add(orderDay, 5, webhook.Deliver.New(webhook.DeliverPayload{}), map[string]any{"url": downReceiver,
		"event": "order.created", "data": map[string]any{"order": 1039}}, 5*time.Second,
		"the receiver "+downReceiver+" answered 503 Service Unavailable")
	add(1, 3, mail.Send.New(mail.SendPayload{}), to(goneReader, "Your order 1040"), 700*time.Millisecond,
		"mail.demo.example refused "+goneReader+": 550 5.1.1 mailbox does not exist")
	return runs
}

// done is a run that completed.
func (p *past) done(at time.Time, spec jobs.Spec, took time.Duration, result any) pastRun {
	took = p.about(took)
	return pastRun{spec: spec, ended: at.Add(took), took: took, wait: p.about(15 * time.Millisecond),
		outcome: jobs.Completed, result: result}
}

// byDay is a moment of a day, most often by daylight.
func (p *past) byDay(day time.Time) time.Time {
	hours := 13 + 4*p.random.NormFloat64()
	return day.Add(time.Duration(max(0, min(23.9, hours)) * float64(time.Hour)))
}
