// Package rootfile writes the small text files at a site's root that other programs
// write too: the sitemap's line of robots.txt, and llms.txt.
//
// It decides nothing about content: the caller says which line, and which links.
//
// Invariants: a file is replaced as a whole or not at all; what another program wrote
// stays; a file longer than 500 KiB is left alone.
package rootfile
