// Command sqlite measures backlite (https://github.com/mikestefanello/backlite)
// doing what bench/queue measures of cmsjobs on SQLite: jobs that do nothing, in
// a fresh file that is as durable as ours. It prints one JSON object a line. It
// is its own module, so that backlite is no dependency of cmsjobs.
package main
