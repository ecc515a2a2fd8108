// Package activity records in the audit log what the service does by itself: jobs
// that it enqueued, and jobs that failed for good.
package activity
