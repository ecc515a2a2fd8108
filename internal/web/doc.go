// Package web is the HTTP face of the service: the API for programs, the pages
// for people, metrics and health for machines that watch.
//
// It is the server, authorization, problems and the framework of pages. All pages
// and calls but those of sessions are features, one package each below feature: a
// handler reads a [Request], asks a port and writes the answer. The list of routes
// (those of the features, and routes.go) is the one place that says who may call
// what; the OpenAPI document and the tests of roles are made from it.
//
// Invariants:
//
//   - Closed by default: a route without a scope does not exist, but for
//     health, the sign-in page and what the configuration opens.
//   - Every answer that is not a success is a problem document (RFC 9457); pages
//     tell the same on a page.
//   - Pages work without JavaScript; texts stand in YAML files, one for each language
//     (templates/admin/texts and those of the features).
//   - Every request that changes something leaves a row in the audit table,
//     whether it succeeded or was refused.
//   - What a request may cost is bounded before it is read: body, page size,
//     time.
//   - Secrets inside payloads are masked before anything is shown.
package web
