// Package php runs PHP's own jobs: it keeps warm PHP processes, each Laravel's
// own "queue:work" whose jobs come from here instead of from a SELECT, hands
// them jobs, and has their outcomes written.
//
// It knows no SQL (Source does that; package phprows implements it) and decides
// nothing that Laravel decides: tries, backoff, time-outs, middleware, batches,
// events, --max-jobs, --memory, queue:restart and maintenance mode are the code
// of the site's own Laravel. The PHP side is in sdk/php/src/Worker.
//
// Frames of 4 bytes of length and JSON go over two pipes, which the process has
// as its descriptors 3 (from us) and 4 (to us). Its standard output and standard
// error are lines of the log of the job in hand.
//
// Invariants:
//
//   - Pull only: a process gets a job when it asks for one, and has one at a time.
//     Who does not ask (maintenance mode, a paused worker) gets nothing, and what
//     was claimed for it goes back, uncounted.
//   - While jobs are short, a process has its next one in its pipe when it asks. It may take it
//     until a time of the system's monotonic clock, 50 ms after it was sent; what it has not read
//     20 ms later is another's, and what it reads after that time it drops. It says at once which
//     of both it did, before it begins.
//   - The end of a process is what the kernel says of it, never an end of file: a
//     job's child may hold the pipes open.
//   - A job that its process has not read is released uncounted. One that it
//     has read is settled once: by PHP's word, or as crashed when the process is
//     gone without a word.
//   - PHP keeps each outcome until it hears that it is written. If we are gone, it
//     writes it itself, under the same fence (id and attempts).
//   - A job that goes on after its time-out is killed a second later, with its
//     whole process group.
//   - Everything that a process sends is bounded: frames, lines, lines a job.
package php
