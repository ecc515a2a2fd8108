// Command screenshots makes docs/images: it starts the demo, signs in and
// takes screenshots of pages with a headless Chromium. ImageMagick, if installed,
// reduces their size.
package main
