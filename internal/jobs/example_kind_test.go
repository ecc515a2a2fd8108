package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A type from its declaration to a run; docs/architecture.md adds one to the service.

type Greeting struct {
	Name string `json:"name"`
}

func (g *Greeting) Validate() error { // an error fails the job permanently: a retry cannot repair it
	if g.Name == "" {
		return errors.New("nobody to greet: name is empty")
	}
	return nil
}

var Greet = jobs.Kind[Greeting]{Name: "example.greet", Policy: jobs.Policy{
	MaxAttempts: 5, Timeout: time.Minute, Backoff: jobs.Exponential(time.Second, time.Hour)}}

func Register(r *jobs.Registry, say func(context.Context, string) error) {
	jobs.Handle(r, Greet, func(ctx context.Context, _ jobs.Job, g Greeting) error {
		if err := say(ctx, "Hello "+g.Name); err != nil {
			return fmt.Errorf("greeting %s: %w", g.Name, err) // retried after the backoff
		}
		return nil
	})
}

func Example_ownKind() {
	registry := jobs.NewRegistry()
	Register(registry, func(_ context.Context, words string) error {
		fmt.Println(words)
		return nil
	})
	job := Greet.New(Greeting{Name: "Ada"})
	entry, _ := registry.Lookup(job.Type)
	fmt.Println(entry.Run(context.Background(), jobs.Job{Type: job.Type, Data: job.Data}))
	fmt.Println(entry.Check(json.RawMessage(`{}`)))
	// Output:
	// Hello Ada
	// <nil>
	// the payload of example.greet is refused: nobody to greet: name is empty
}
