// Package template fills in the texts of mails: the templates of this service,
// those that the operator puts in their place, and simple ones of the CMS.
//
// It sends nothing. Invariants: values are escaped where they are put in; what a
// template may read and write is bounded; Twig of the CMS that cannot be filled in
// here is an error, never half a text.
package template
