// Package jobs is the pages and the API of jobs: lists, one job, failed jobs by
// cause, and everything that enqueues, changes or explains jobs.
//
// It decides nothing about them: package ops has the rules, and its ports change
// the tables.
//
// Invariants: a job runs only after the rule of effects allowed it to the caller,
// at the place of the effect; a change of many jobs is counted before it is done;
// secrets in payloads are masked on their way out.
package jobs
