// Package client holds the Go client (module client, which knows nothing of the
// service) against the service: what the client writes is what the service
// would write, and what the client asks for is what the service answers.
package client
