// Command screencast makes docs/images/screencast.webp: it starts the demo, walks through
// its pages with a headless Chromium, and puts the pictures of them together with
// ImageMagick.
package main
