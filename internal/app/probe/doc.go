// Package probe is the job type cmsjobs.probe, which does nothing but what its
// payload says: it shows that jobs are enqueued, run, retried and failed as they
// should be.
package probe
