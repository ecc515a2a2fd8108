// Package worker lets another Go program run jobs of its types from the
// queue of a CMS, in its own process: Register a function for a type, Start,
// Stop. It claims, renews and ends jobs as the service itself does, with the same
// code, on Laravel's tables and on the extended ones.
//
// It enqueues nothing and shows nothing: that is the module
// github.com/cmsjobs/cmsjobs/client, which needs no more than the standard
// library. This package needs the service's module and its database drivers.
// The service's own tables (cmsjobs_*) must be there: run "cmsjobs migrate" once.
//
// A handler may run more than once for one job after a crash: make it repeatable.
package worker
