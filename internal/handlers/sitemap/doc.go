// Package sitemap writes the site's XML sitemap (sitemap.generate) and tells
// search engines what changed (sitemap.indexnow).
//
// It is not a crawler: what is in the map comes out of the CMS's tables, with
// the addresses that the CMS itself shows. Invariants: a reader of the
// published files never sees half a file, nor an index that names a file which
// is not there; a crash while files are made leaves the map before it, one
// while they are put into place a map of whole files, old and new, that the
// next run completes; only files that carry our marker are ever removed; one
// bad row never ends a run; memory does not grow with the number of addresses
// (telling search engines needs 13 bytes for each); trouble with IndexNow
// never touches the map.
//
// Sources: sitemaps.org/protocol.html and its schemas sitemap.xsd and
// siteindex.xsd; indexnow.org/documentation.
package sitemap
