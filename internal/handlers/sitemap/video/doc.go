// Package video finds the videos in an editor's HTML: players of YouTube, files, and
// the shortcodes of Botble's editor.
//
// It asks no other server about them, and knows nothing of sitemaps.
//
// Invariants: any bytes can be read; addresses are of http or https and carry no
// password.
package video
