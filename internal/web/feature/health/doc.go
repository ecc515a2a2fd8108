// Package health is what programs that watch the service ask: probes, conditions
// and metrics.
//
// It is not the overview, which tells people the same, and it measures no
// conditions itself.
//
// Invariants: its routes stay when the API is switched off; a probe names what is
// wrong, not why; labels of metrics are few, whatever names rows have.
package health
