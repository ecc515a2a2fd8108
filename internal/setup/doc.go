// Package setup puts the service beside a CMS on a host, and takes it away again.
//
// MakePlan is pure: from what was found out about the host and the site, and from
// the owner's answers, it says which files are written, which commands run and how
// each is undone. Apply and Remove carry a plan out. They know nothing of jobs and
// of the CMS: what the service itself does (tables, first backup, first sitemap) the
// caller starts.
//
// Invariants: nothing foreign is replaced: a file that is there and that no record
// names stops Apply before it changes anything. Each change is in the record before
// it is made, so that Remove also undoes a setup that was interrupted. Remove leaves
// a file alone that its owner changed since, and says so.
package setup
