package docs

import "embed"

// Files are the pages (NAME.md, adr/NAME.md) and their pictures (images/NAME.png).
//
//go:embed *.md adr/*.md images/*.png
var Files embed.FS
