// Package queues is the pages and the API of queues and of the workers that serve
// them.
//
// It runs no jobs: package ops pauses and continues queues and stops workers.
//
// Invariant: what makes jobs run (the end of a pause) asks the rule of effects.
package queues
