// Package config turns flags, the environment, a YAML file and the CMS's .env
// into one checked struct. It is imported by cmd only: other packages have their own
// Config structs from there.
//
// What is said in more than one place is decided by this order: flag, then
// CMSJOBS_* environment, then the specifications' own names (JOBS_*, QUEUE_*,
// ENABLE_WORKER), then the YAML file, then the CMS's .env, then the default.
//
// Invariants: an unknown key is a fault, with a suggestion; all faults are
// reported at once, each with the place that it came from; every value knows
// its origin; secrets mask themselves wherever they are printed, encoded or
// logged, and are had only by Reveal. This is the only package that reads the
// process's environment.
package config
