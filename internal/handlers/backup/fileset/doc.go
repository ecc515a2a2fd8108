// Package fileset names the CMS's files that belong into backups: folders with a
// label, and patterns on LABEL/PATH.
package fileset
