package main

import "fmt"

// usageError is the caller's mistake.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// databaseError says that the database cannot be reached or used.
type databaseError struct{ error }

func (e databaseError) Unwrap() error { return e.error }
