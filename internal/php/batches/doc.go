// Package batches reads Laravel's batches of jobs from its table job_batches.
//
// It changes nothing: Laravel counts, cancels and prunes batches. The column options
// holds serialized PHP and is never read.
//
// Invariants:
//
//   - A list goes along the primary key (ids are ordered by time since Laravel 8) and
//     goes on from the last id: no page reads the whole table.
//   - A site without the table has no batches.
package batches
