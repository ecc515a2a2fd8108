// Command cmsjobs is the background-jobs service of a CMS: workers, scheduler,
// web and their tools in one binary. What it does is in internal/cli.
package main
