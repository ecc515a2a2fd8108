// Command queue measures cmsjobs' queue beside its peers in one run: Laravel's
// own worker on a MariaDB, River and graphile-worker on a PostgreSQL, backlite on
// SQLite. It starts the servers itself and ends them, and writes tables of
// figures and ratios. Peers that are not installed are left out, and the report
// says so.
package main
