// Command queue measures cmsjobs' queue beside its peers in one run: Laravel's
// own worker on MySQL and on MariaDB, River and graphile-worker on PostgreSQL,
// backlite on SQLite. It starts the servers itself and ends them, and writes tables
// of figures and ratios. MySQL and MariaDB run with the same settings for
// durability, which the report states. Peers that are not installed are left out,
// and the report says so.
package main
