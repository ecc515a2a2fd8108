package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Publish makes one piece of content public.
var Publish = jobs.Kind[Payload]{Name: "content.publish", Policy: jobs.Policy{
	MaxAttempts: 5, Timeout: 5 * time.Minute, Backoff: jobs.Steps(10*time.Second, time.Minute, 5*time.Minute),
}}

// Payload names the content.
type Payload struct {
	// Model is posts, pages or another that is configured; "post" is read too.
	// "" is posts.
	Model string `json:"model" default:"posts" example:"posts"`
	ID    ID     `json:"id" required:"true" example:"17" synonyms:"postId,articleId,advId"`
	// At is the moment that this job is for, where the row has no column for it;
	// a row whose own date is another one wins.
	At *time.Time `json:"at,omitempty"`
	// Refresh says that the content is public by its status already: only what
	// shows it is renewed, and a draft stays one.
	Refresh bool `json:"refresh,omitempty" default:"false"`
	DryRun  bool `json:"dryRun,omitempty" default:"false"`
}

// Validate asks for an id.
func (p *Payload) Validate() error {
	if p.ID == "" || len(p.ID) > 64 {
		return phrase.Errorf("id is missing: it names the row to publish")
	}
	return nil
}

// ID is a row's id: a number, a UUID or a ULID.
type ID string

// AlsoReads implements schema.AlsoReader.
func (ID) AlsoReads() string { return "integer" }

// UnmarshalJSON reads 12 and "12".
func (id *ID) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(id))
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("an id is a number or a string: %w", err)
	}
	if strings.ContainsAny(n.String(), ".eE") {
		return fmt.Errorf("%s is no id", n)
	}
	*id = ID(n)
	return nil
}
