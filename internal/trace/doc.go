// Package trace follows a job from its enqueuing to its end and sends what it
// saw to a collector of OpenTelemetry, as OTLP over HTTP in JSON.
//
// It is the part of OpenTelemetry that this service needs and no more: spans
// that are made when they have ended, W3C trace context in and out, one batch
// after the other. It knows nothing of jobs; the wiring makes spans of them.
//
// Invariants: a span never blocks or fails the work that it tells of (when the
// collector is slow, spans are dropped and counted); anyone who asked not to be
// sampled is not; nothing is sent before Run and nothing is left after it.
package trace
