// Package measure measures the queue of one installation with jobs that do
// nothing: how fast they are enqueued, picked up and worked, and what an idle
// worker costs. Command bench prints its figures.
//
// It is no load test of handlers, and compares nothing with other programs; the
// module bench does.
//
// Invariants:
//
//   - Its jobs lie in their own queue, Queue.
//   - On a database that is not its own it takes its waiting jobs away again.
package measure
