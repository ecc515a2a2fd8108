// Package docs holds the documents that the program shows as its manual. Data only:
// package manual reads them.
package docs

import "embed"

// Files are the pages (NAME.md, adr/NAME.md) and their pictures (images/NAME.png).
//
//go:embed *.md adr/*.md images/*.png
var Files embed.FS
