// Package schedules is the pages and the API of the schedule: its entries, their
// ticks, and the round that a host without a daemon asks for.
//
// It computes no ticks: its port does.
//
// Invariant: a change that makes a job run asks the rule of effects with the
// payload that the job has then.
package schedules
