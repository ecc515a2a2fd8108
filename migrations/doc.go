// Package migrations makes our own tables, all named cmsjobs_*, by goose. It
// never touches a table of the CMS.
//
// One folder a database; a migration has the same number and name in each. MySQL has no
// transaction around CREATE TABLE: there, each statement may run again (IF NOT EXISTS,
// indexes within the table). Use BIGINT Unix milliseconds (or DATETIME in UTC, never a
// bare TIMESTAMP) for times, VARCHAR(191) for keys. Numbers are handed out in tens by
// area: 10 queue, 20 schedule, 30 sitemap, 40 mail, 50 webhook, 60 backup, 70 analytics,
// 80 access, 90 media.
//
// A statement of several lines stands between StatementBegin and StatementEnd. Without,
// goose looks for its end at every line, each time in 4 MiB of memory: 600 MiB for a
// fresh database under the race detector, whose sync.Pool forgets every fourth buffer.
package migrations
