// Package remote is the protocol by which programs in any language run jobs of
// their types over HTTP: register, claim, heartbeat, complete, fail, release,
// leave. It translates between JSON and package internal/remote, which has the
// rules of leases.
//
// Every call needs a token with the scope work: what changes by it is a job of the
// program's types, and a browser's session is never taken for it.
package remote
