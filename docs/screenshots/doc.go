// Command screenshots makes docs/images: it starts the demo, signs in and
// photographs pages by a headless Chromium. ImageMagick, where it is there, makes
// the pictures small.
package main
