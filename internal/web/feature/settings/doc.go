// Package settings is the page and the API of the configuration in force and the
// origin of each value.
//
// It changes none: the configuration does.
//
// Invariant: secrets arrive masked.
package settings
