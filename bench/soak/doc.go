// Command soak runs cmsjobs in earnest: the real program with its real kinds on
// a sample site and its own MariaDB, for an hour, while it kills, stops and
// cuts off what can be. Sitemaps, pictures, backups and publications are made,
// mails go to an SMTP server, webhooks to an HTTP server, both of this process,
// which is what nothing happens to. A judge then reads the history and says what
// was lost, doubled or late.
//
// The exit code is 0 when nothing was, 1 when something was or the run failed.
package main
