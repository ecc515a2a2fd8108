// Command river measures River (https://riverqueue.com) doing what bench/queue
// measures of cmsjobs: jobs that do nothing, on an empty PostgreSQL database.
// It prints one JSON object a line. It is its own module, so that River is
// no dependency of cmsjobs.
package main
