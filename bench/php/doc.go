// Command php measures PHP's own jobs run by cmsjobs beside Laravel's queue:work, on the
// same table of the same server: jobs a second and processor time, what a run adds to
// its job, how soon a crash is known, how soon a dispatch is picked up. It starts a
// server and ends it. Laravel is that of Debian's packages.
package main
