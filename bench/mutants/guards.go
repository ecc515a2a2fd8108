package main

import (
	"slices"
	"time"
)

// guard is a piece of code that keeps a promise, and how to take it out.
type guard struct {
	promise  string // P1 to P14, or D: what keeps strangers out
	name     string // what it does
	file     string // from the project's root
	old      string // stands once in file
	without  string // stands there when the guard is taken out
	also     string // a second text of file that keeps the promise by itself; "" is none
	instead  string // stands there then
	in       string // the package of its test
	test     string
	only     string        // a subtest that shows it, where the whole takes long; "" is all
	full     bool          // it shows at the test's full size only (CMSJOBS_SOAK=1)
	patience time.Duration // how long the test may take; 0 is patience
}

const (
	queue  = "./internal/jobs"
	store  = "./internal/jobs/queue"
	past   = "./internal/jobs/history"
	mails  = "./internal/handlers/mail"
	backup = "./internal/handlers/backup"
	pages  = "./internal/web"
)

var guards = slices.Concat(guardsOfClaims, guardsOfCursors, guardsOfEnds, guardsOfQueue, guardsOfWorkers, guardsOfPHP,
	guardsOfBackups, guardsOfAccess, guardsOfRights, guardsOfPages, guardsOfReading, guardsOfSites)
