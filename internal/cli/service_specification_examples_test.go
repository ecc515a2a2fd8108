package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// example is one of the specifications' own: the JSON as it stands there.
type example struct {
	name, text string
	later      time.Duration // when it may run, from now on; such jobs are looked at while they wait
	edited     bool          // the handler, or the service, changes what is kept of the payload
}

// examples are those of the five specifications. S0 shows payloads; S1, S2 and S4 show
// requests, or name a type and its fields; S3 shows PHP, whose data is the payload here.
var examples = []example{
	{name: "S0 1, sitemap", text: `{
  "type": "sitemap.generate",
  "force": false
}`},
	{name: "S0 2, IndexNow", text: `{
  "type": "sitemap.indexnow",
  "sitemapUrl": "https://example.com/sitemap.xml"
}`},
	{name: "S0 3, image", text: `{
  "type": "media.processImage",
  "mediaFileId": 123,
  "filePath": "/storage/media/2024/01/image.jpg",
  "mimeType": "image/jpeg"
}`},
	{name: "S0 4, cache", text: `{
  "type": "cache.clear",
  "tags": ["pages", "posts", "sitemap"],
  "clearAll": false
}`},
	{name: "S0 5, mail", edited: true, text: `{
  "type": "mail.send",
  "to": "user@example.com",
  "subject": "Email Subject",
  "body": "Email body (HTML or text)",
  "from": "noreply@example.com",
  "attachments": []
}`},
	{name: "S0 6, backup", text: `{
  "type": "backup.generate",
  "includeFiles": true,
  "includeDatabase": true,
  "storage": "local"
}`},
	{name: "S0 7, analytics", text: `{
  "type": "analytics.process",
  "dateRange": {
    "start": "2024-01-01",
    "end": "2024-01-31"
  }
}`},
	{name: "S0 schedule 2", text: `{ "type": "sitemap.indexnow", "sitemapUrl": null }`},
	{name: "S0 schedule 3", text: `{ "type": "cache.clearExpired" }`},
	{name: "S0 schedule 4", text: `{ "type": "backup.generate", "includeFiles": true, "includeDatabase": true }`},
	{name: "S0 schedule 5", text: `{ "type": "analytics.process" }`},
	{name: "S0 schedule 6", text: `{ "type": "logs.cleanup" }`},
	{name: "S0 structure", text: `{
  "type": "job.name",
  "data": {
  },
  "metadata": {
    "userId": 123,
    "ipAddress": "192.168.1.1",
    "userAgent": "Mozilla/5.0..."
  }
}`},
	{name: "S1 enqueue", text: `{
    "topic": "mail_digest",
    "payload": {"userId": "123"},
    "runAt": "2026-01-08T12:00:00Z",
    "maxRetries": 5
}`},
	{name: "S1 EnqueueAt", later: 15 * time.Minute, text: `{"topic": "check_payment", "payload": {"orderId": "456"}}`},
	{name: "S2 email", edited: true, text: `{"type": "email.send", "payload": {"template": "password-reset",
		"recipient": "user@example.com", "data": {"name": "A", "url": "https://example.com/reset"}}}`},
	{name: "S2 cleanup", text: `{"type": "maintenance.cleanup", "payload": {}}`},
	{name: "S3 push", later: 2 * time.Minute, text: `{"type": "reports.generate", "queue": "reports",
		"data": {"name": "My Table", "header": ["Foo", "Bar"], "rows": [["Fizz", "Buzz"]]}}`},
	{name: "S3 data", text: `{"type": "reports.generate", "data": {"foo": "bar"}}`},
	{name: "S4 post", text: `{"jobType": "publish_post", "payload": {"id": 1}, "scheduledFor": "2026-01-08T12:00:00Z",
		"maxRetries": 3}`},
	{name: "S4 adv", text: `{"jobType": "publish_adv", "payload": {"id": 1}, "maxRetries": 3}`},
	{name: "S4 notification", text: `{"jobType": "send_notification", "payload": {"title": "t"}}`},
}

// programs are the types of the examples that a program brings.
var programs = []string{"mail_digest", "check_payment", "job.name", "reports.generate", "publish_adv"}

// asked is an example taken apart: what each way in says in its own words.
type asked struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Queue       string          `json:"queue,omitempty"`
	RunAt       *time.Time      `json:"run_at,omitempty"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Flat        bool            `json:"-"` // the text is the payload
}

// read takes an example apart at a time.
func (e example) read(t *testing.T, now time.Time) (a asked) {
	t.Helper()
	var fields struct {
		Type, Topic, JobType string
		Payload, Data        json.RawMessage
		Metadata             json.RawMessage
		Queue                string
		RunAt, ScheduledFor  *time.Time
		MaxRetries           *int
	}
	if err := json.Unmarshal([]byte(e.text), &fields); err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	a = asked{Type: fields.Type + fields.Topic + fields.JobType, Payload: fields.Payload, Metadata: fields.Metadata,
		Queue: fields.Queue, RunAt: fields.RunAt}
	if a.Payload == nil {
		a.Payload = fields.Data
	}
	if a.Payload == nil {
		a.Payload, a.Flat = json.RawMessage(e.text), true
	}
	if fields.ScheduledFor != nil {
		a.RunAt = fields.ScheduledFor
	}
	if fields.MaxRetries != nil {
		a.MaxAttempts = *fields.MaxRetries + 1
	}
	if e.later > 0 {
		at := now.Add(e.later).UTC().Truncate(time.Second)
		a.RunAt = &at
	}
	return a
}

// plain is the payload without the type, as every way in keeps it.
func (a asked) plain(t *testing.T) (fields map[string]any) {
	t.Helper()
	if err := json.Unmarshal(a.Payload, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "type")
	return fields
}

// request is the body of an enqueue over HTTP: the text where it is a request, else a
// request with the text as its payload.
func (e example) request(t *testing.T, a asked) string {
	t.Helper()
	switch {
	case a.Flat:
		return `{"type": "` + a.Type + `", "payload": ` + e.text + `}`
	case e.later > 0:
		at := a.RunAt.Format(time.RFC3339)
		return strings.TrimSuffix(strings.TrimSpace(e.text), "}") + `, "runAt": "` + at + `"}`
	}
	return e.text
}
