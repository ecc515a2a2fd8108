// Package cms reads the CMS: its tables, settings, .env and folders, as Go
// values. It is the only code that knows the columns of the CMS's tables.
//
// It is not a copy of the CMS: it holds no state longer than a job, and it
// writes only what a handler asks it to. Invariants: ids are opaque strings
// (bigint, UUID or ULID); a missing settings row means the CMS's own default;
// times in the CMS's tables are wall-clock strings in the CMS's own zone and
// are never compared with the database's clock; what a version of the CMS does
// not have is found out by looking, not by its version number.
package cms
