// Package links follows the links of a site and says which of them lead nowhere (type
// links.check).
//
// It reads pages as a reader's browser does and does not look into the CMS's tables. It
// asks nothing of other sites: only links within the site are followed. It repairs nothing.
//
// Invariants:
//
//   - Only addresses of the site are asked for, whatever a job or a page says.
//   - A run is bounded in addresses, in time, in requests at once and in bytes of a page.
//   - An address is asked for once in a run. A page that could not be asked for, because the
//     run reached its bounds, is counted, never called broken.
package links
