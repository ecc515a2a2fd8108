package app

import "fmt"

// UsageError is the caller's mistake.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error { return UsageError{Err: fmt.Errorf(format, args...)} }

// DatabaseError says that the database cannot be reached or used.
type DatabaseError struct{ Err error }

func (e DatabaseError) Error() string { return e.Err.Error() }

// Unwrap returns what the database or the driver said.
func (e DatabaseError) Unwrap() error { return e.Err }
