// Package cache keeps the CMS clean: it clears caches, removes what
// expired from them, prunes log files and the rows that the CMS lets pile up,
// and has the queue itself cleaned.
//
// It is not a cache. It knows the layouts that Laravel gives its cache stores
// (file, database, Redis), and nothing of what is in the entries.
//
// Invariants:
//
//   - Every path goes through an os.Root on the CMS's folder; symlinks are not
//     followed, but for storage itself, which releases may share (a folder laid
//     out as Laravel's); dot files and chunk uploads in progress stay.
//   - Rows are deleted by primary key, a few hundred a statement, each statement
//     its own transaction: no other connection waits long.
//   - Every job has a dry-run that counts and removes nothing.
//   - Clearing is best effort: what could not be removed is listed in the job's
//     result, and the job does not fail.
package cache
