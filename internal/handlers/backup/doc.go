// Package backup makes backups of a CMS, verifies that they restore, prunes them
// out, and restores them: the type backup.generate and what the command line
// and the admin pages call.
//
// It is not a file sync. A backup restores with tools that outlive this program (tar,
// zstd, a shell, the database's own client): as one archive, or as an archive beside a
// repository that has the parts of the database and the files, each content once.
// Invariants: a backup counts only once its manifest file (KEY.json) lies beside the whole
// archive, so that what a kill -9 leaves is never taken for one; a backup whose database
// part failed is partial, and one whose newest verification failed is failed, and neither
// counts as complete; the newest verified one of each part is never deleted; nothing is
// restored without a dry run's token, from an archive that this installation never made
// unless the request allows it, or before the whole archive was copied and checked; memory does
// not grow with the site.
//
// An archive holds, in this order:
//
//	cmsjobs-backup.json         what it is (Header)
//	database/000001-TABLE.sql   the dump, to be joined in this order
//	routines/000002.sql         what needs DELIMITER, after it
//	files/LABEL/PATH            files of the CMS
//	manifest/files-000001.jsonl the files before it, one JSON object a line
//	manifest.json               tables, checksums, totals (Manifest); always last
//
// With a repository, what is in it is read as if it were there.
package backup
