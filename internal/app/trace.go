package app

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/trace"
)

// OpenTracer makes the tracer where the configuration names a collector.
func (r *Services) OpenTracer() {
	c := r.Config.Telemetry
	if c.Traces == "" {
		return
	}
	header := http.Header{}
	if c.Authorization != "" {
		header.Set("Authorization", c.Authorization.Reveal())
	}
	info := r.workerInfo("")
	r.tracer = trace.New(trace.Config{Endpoint: c.Traces, Header: header, Share: c.Share, Now: r.Now,
		Random: rand.Float64, Log: r.Log,
		Resource: map[string]any{"service.name": "cmsjobs", "service.version": r.Version,
			"service.instance.id": info.ID, "host.name": info.Host}})
}

// enqueueTraced puts jobs into the queue. With a tracer each gets a span, and
// says it in its metadata, so that its runs follow wherever they are.
func (r *Services) enqueueTraced(ctx context.Context, list []jobs.Spec) ([]jobs.Receipt, error) {
	if r.tracer == nil {
		return r.Store.Enqueue(ctx, list...)
	}
	spans := make([]trace.Span, len(list))
	for i, n := range list {
		parent := parentOf(n.Metadata)
		spans[i] = trace.Span{Context: r.tracer.Begin(parent), Parent: parent.Span, Name: "enqueue " + n.Type,
			Kind: trace.Producer, Start: r.Now()}
		list[i].Metadata = withParent(n.Metadata, spans[i].Context)
	}
	receipts, err := r.Store.Enqueue(ctx, list...)
	for i, s := range spans {
		s.End, s.Attributes = r.Now(), messaging("send", list[i].Type, list[i].Queue)
		if err != nil {
			s.Error = err.Error()
		} else {
			s.Attributes["messaging.message.id"], s.Attributes["cmsjobs.existing"] = receipts[i].UUID,
				receipts[i].Existing
		}
		r.tracer.Ended(s)
	}
	return receipts, err
}

// TraceRun makes a span of a run that ended, below the span that enqueued its
// job, and one of the wait before it.
func (r *Services) TraceRun(end jobs.Settlement) {
	if r.tracer == nil || end.Started.IsZero() {
		return
	}
	job, parent := end.Claimed.Job, parentOf(end.Claimed.Job.Metadata)
	run := trace.Span{Context: r.tracer.Begin(parent), Parent: parent.Span, Name: job.Type, Kind: trace.Consumer,
		Start: end.Started, End: end.Started.Add(end.Duration),
		Attributes: messaging("process", job.Type, job.Queue)}
	run.Attributes["messaging.message.id"] = job.UUID
	run.Attributes["cmsjobs.attempt"] = int64(job.Attempt)
	run.Attributes["cmsjobs.outcome"] = end.Outcome.String()
	run.Attributes["cmsjobs.worker"] = end.Worker
	if end.Outcome == jobs.Retried || end.Outcome == jobs.Failed {
		run.Error, _, _ = strings.Cut(end.Error, "\n")
	}
	r.tracer.Ended(run)
	if end.Wait > 0 {
		above := parent.Span
		if above == [8]byte{} { // nobody enqueued it with a span, as an INSERT does
			above = run.Span
		}
		wait := trace.Span{Context: r.tracer.Begin(run.Context), Parent: above, Name: "wait " + job.Type,
			Kind:  trace.Internal,
			Start: end.Started.Add(-end.Wait), End: end.Started, Attributes: map[string]any{
				"messaging.message.id": job.UUID}}
		r.tracer.Ended(wait)
	}
}

// messaging are the attributes of OpenTelemetry's conventions for queues.
func messaging(operation, jobType, queue string) map[string]any {
	return map[string]any{"messaging.system": "cmsjobs", "messaging.operation.type": operation,
		"messaging.destination.name": queue, "cmsjobs.type": jobType}
}

const traceparent = "traceparent"

// parentOf is the span that a job's metadata names; none where they name none.
func parentOf(metadata json.RawMessage) trace.Context {
	var m struct {
		Traceparent string `json:"traceparent"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil {
		return trace.Context{}
	}
	parent, ok := trace.Parse(m.Traceparent)
	if !ok {
		return trace.Context{}
	}
	return parent
}

// withParent names a span in metadata; what is no object stays as it is, for
// others to refuse.
func withParent(metadata json.RawMessage, c trace.Context) json.RawMessage {
	keys := map[string]json.RawMessage{}
	if len(metadata) > 0 && json.Unmarshal(metadata, &keys) != nil || keys == nil {
		return metadata
	}
	keys[traceparent] = json.RawMessage(`"` + c.String() + `"`)
	text, err := json.Marshal(keys)
	if err != nil {
		return metadata
	}
	return text
}

// telemetryFor is how long a worker that has ended may take to send its last
// spans.
const telemetryFor = 15 * time.Second

// Tracing runs the tracer while work goes on, and a moment longer: the last
// runs end with the worker.
func (r *Services) Tracing(ctx context.Context, work func() error) error {
	if r.tracer == nil {
		return work()
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	sent := make(chan error, 1)
	go func() { sent <- r.tracer.Run(sending) }()
	err := work()
	stop()
	select {
	case <-sent:
	case <-time.After(telemetryFor):
	}
	return err
}
