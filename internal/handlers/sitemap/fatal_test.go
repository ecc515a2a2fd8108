package sitemap_test

import (
	"context"
	"testing"
)

// fatal is a testing.TB for a process that is no test: what fails ends it.
type fatal struct{ testing.TB }

func (fatal) Helper()                  {}
func (fatal) Fatal(args ...any)        { panic(args) }
func (fatal) Context() context.Context { return context.Background() }
