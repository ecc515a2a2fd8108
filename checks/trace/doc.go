// Package trace holds the spans that the service sends against the schema that
// OpenTelemetry publishes.
package trace
