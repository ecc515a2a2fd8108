// Package ops is what people and programs do with jobs, runs, workers, queues
// and schedules: the views that they see, the filters and times that they
// write, and the actions with their rules. The command line, the HTTP API and
// the admin page show and do things by it, so that they say the same.
//
// It is no store, which packages queue and history are, and it knows no rights: the caller
// of an action has checked them (package web/access). The older shapes of
// the specifications are in package web/compat.
//
// Invariants:
//
//   - A thing has one view, and a field one name: id is the UUID, number the row.
//   - What a job, a server or a person wrote passes a Viewer on its way out.
//   - A change of many jobs is made in steps of bounded size and ends.
//   - A refusal carries its form and arguments, for other languages.
package ops
