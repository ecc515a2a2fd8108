// Package sites runs several sites in one process.
//
// It joins no parts of a site, which is what package app does, and knows no job: it opens
// each site's services, starts their parts, opens a site again that could not be opened
// or ended, and passes requests on to the site that they are for.
//
// Invariants: nothing but slots, port, log and memory is shared; a fault of one site ends
// no other; no two sites use the same tables; a site that is not open answers 503.
package sites
