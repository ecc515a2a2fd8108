// Package demosite starts the demo for programs that look at its pages, and signs in
// there. Chromium, node and the demo end with the context.
package demosite
