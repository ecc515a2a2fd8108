// Package importer reads how a site ran its queue workers until now, from
// Supervisor's programs and from config/horizon.php, and says it as our settings
// "php:".
//
// It runs neither shell nor PHP, and writes no file: its result is text for a person
// to put into the configuration.
//
// Invariants:
//
//   - What has no setting of ours, or is understood only in part, becomes a note.
//   - Files are read up to a bound; unknown keys and sections are passed over.
package importer
