// Package dkim signs mail (RFC 6376).
package dkim
