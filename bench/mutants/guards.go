package main

import "time"

// guard is a piece of code that keeps a promise, and how to take it out.
type guard struct {
	promise  string // P1 to P14
	name     string // what it does
	file     string // from the project's root
	old      string // stands once in file
	without  string // stands there when the guard is taken out
	in       string // the package of its test
	test     string
	only     string        // a subtest that shows it, where the whole takes long; "" is all
	patience time.Duration // how long the test may take; 0 is patience
}

const (
	queue  = "./internal/jobs"
	store  = "./internal/jobs/sqlstore"
	mails  = "./internal/handlers/mail"
	backup = "./internal/handlers/backup"
)

var guards = []guard{
	{promise: "P1", name: "a claim whose answer was lost is given back", file: "internal/jobs/sqlstore/doubt.go",
		old: "if Classify(err).unclear() && !errors.Is(err, errContended) {", without: "if Classify(err).unclear() && errors.Is(err, errContended) {", in: store, test: "TestALostAnswerToCommit"},
	{promise: "P1", name: "a page of others' rows is followed by the next", file: "internal/jobs/sqlstore/claim.go",
		old: "	if err == nil && c.unseen {", without: "	if false {", in: store, test: "TestAClaimThatEndsAtItsBoundsSaysSo", only: "sqlite-stock-skip"},
	{promise: "P2", name: "a row is claimed as it was read, or not", file: "internal/jobs/sqlstore/take.go",
		old: "if n != int64(len(group)) {", without: "if n < 0 {", in: queue, test: "TestAHundredSlotsInFourProcessesRunEachJobOnce", only: "cas"},
	{promise: "P3", name: "an end or a renewal names its lease", file: "internal/jobs/sqlstore/layout_stock.go",
		old: `	return fmt.Sprintf("attempts = %d AND %s", l.Attempt, held), nil`, without: `	return held[:0] + "1 = 1", nil`, in: queue, test: "TestAWorkerPausedPastItsLeaseChangesNothing"},
	{promise: "P3", name: "the same, call by call", file: "internal/jobs/sqlstore/layout_stock.go",
		old: `	return fmt.Sprintf("attempts = %d AND %s", l.Attempt, held), nil`, without: `	return held[:0] + "1 = 1", nil`, in: store, test: "TestConformance", only: "sqlite-stock-cas"},
	{promise: "P3", name: "a job is not begun past its lease", file: "internal/jobs/worker_run.go",
		old: "err != nil || f.alive() {", without: "err != nil || f.alive != nil {", in: queue, test: "TestAJobIsNotBegunPastItsLease"},
	{promise: "P4", name: "leases are renewed", file: "internal/jobs/sqlstore/layout_stock.go",
		old:     `func (t *stock) renew(until int64) string { return t.locked.name + " = " + t.locked.at(until) }`,
		without: `func (t *stock) renew(int64) string { return t.locked.name + " = " + t.locked.name }`, in: queue, test: "TestAJobLongerThanItsLeaseRunsOnce"},
	{promise: "P4", name: "jobs of dead workers are looked for", file: "internal/jobs/sqlstore/sweep.go",
		old: `		state = "(" + state + " OR " + c.s.t.expired(c.s.now(), c.s.retryAfter) + ")"`, without: `		state = c.s.t.waiting()`, in: queue, test: "TestAShortLivedWorkerRescues", only: "sqlite"},
	{promise: "P4", name: "what falls due behind others' rows is looked at in its second", file: "internal/jobs/sqlstore/pending.go",
		old: "	if c.s.t.kind() != Stock || !l.long {", without: "	if len(delayed) >= 0 {", in: queue, test: "TestUnknownRowsDelayNobody", only: "mysql/indexed=false"},
	{promise: "P5", name: "trouble of the server gives the attempt back", file: "internal/jobs/worker_run.go",
		old: "case !errors.Is(err, ErrTimeout) && w.c.DatabaseTrouble(err):", without: "case false:", in: queue, test: "TestTroubleOfTheServerIsNoJobsFault", only: "sqlite"},
	{promise: "P5", name: "a handler's own refused statement is charged", file: "internal/jobs/sqlstore/errors.go",
		old: "		return Classify(err).server()", without: "		return Classify(err).Trouble()", in: queue, test: "TestAHandlersRefusedStatementIsItsJobsFault", only: "sqlite"},
	{promise: "P5", name: "a shutdown gives the attempt back", file: "internal/jobs/sqlstore/layout_stock.go",
		old: "	if uncount {", without: "	if false {", in: queue, test: "TestAJobIsGivenBackAfterItsHandlerHasReturned"},
	{promise: "P5", name: "so does a failed probe of a circuit breaker", file: "internal/jobs/breaker/breaker.go",
		old: "	if before != Closed {", without: "	if false {", in: queue, test: "TestAnOpenBreakerCostsNoAttempt", only: "sqlite"},
	{promise: "P5", name: "what failed for good is in failed_jobs", file: "internal/jobs/sqlstore/settle.go",
		old: "	if err := s.bury(ctx, t, ends); err != nil {", without: "	if err := s.bury(ctx, t, nil); err != nil {", in: queue, test: "TestAHandlersRefusedStatementIsItsJobsFault", only: "sqlite"},
	{promise: "P6", name: "a row narrows its kind's time", file: "internal/jobs/kind.go",
		old: "		return min(row, p.Timeout)", without: "		return row", in: queue, test: "TestARowCannotLengthenItsTimeOut", patience: time.Minute},
	{promise: "P6", name: "a row narrows its kind's attempts", file: "internal/jobs/kind.go",
		old: "			limit = min(limit, row)", without: "			limit = row", in: store, test: "TestConformance", only: "sqlite-stock-cas"},
	{promise: "P6", name: "what can never run is buried, not run", file: "internal/jobs/worker_run.go",
		old: "	case x.claimed.Fault != nil:", without: "	case false:", in: queue, test: "TestPoisonCostsItsJobOnly", only: "sqlite"},
	{promise: "P7", name: "a name is taken once", file: "internal/jobs/sqlstore/enqueue_named.go",
		old: "		if existing != nil {", without: "		if false {", in: store, test: "TestConformance", only: "sqlite-stock-cas"},
	{promise: "P7", name: "EnqueueTx writes in the caller's transaction", file: "internal/jobs/sqlstore/enqueue.go",
		old: "s.insertAll(ctx, tx{t, own}, prepared)", without: "s.insertAll(ctx, tx{s.db, own}, prepared)", in: "./client", test: "TestAJobLivesAndDiesWithItsTransaction"},
	{promise: "P8", name: "a tick that is taken is nobody else's", file: "internal/jobs/sqlstore/ticks.go",
		old: "		if duplicate(err) {\n			return errTaken\n		}", without: "		if duplicate(err) {\n			err = nil\n		}", in: "./internal/jobs/schedule", test: "TestFiveSchedulersOverAMonth", only: "sqlite"},
	{promise: "P8", name: "an entry has no ticks before it was there", file: "internal/jobs/schedule/schedule.go",
		old: "e.since, e.begun}", without: "e.since}", in: "./internal/jobs/schedule", test: "TestAnEntryHasNoTicksBeforeItWasThere", only: "sqlite"},
	{promise: "P9", name: "running jobs get the grace", file: "internal/jobs/worker.go",
		old: "grace := time.NewTimer(w.c.Grace)", without: "grace := time.NewTimer(0)", in: queue, test: "TestARollingRestartRepeatsNothing"},
	{promise: "P9", name: "nothing is claimed after TERM", file: "internal/jobs/worker_claim.go",
		old: "		case <-ctx.Done():\n			return\n		case <-w.stopRequested:\n			return\n		case <-deadline:", without: "		case <-w.stopRequested:\n			return\n		case <-deadline:",
		in: queue, test: "TestARollingRestartRepeatsNothing"},
	{promise: "P9", name: "a job is given back after its handler has returned", file: "internal/jobs/worker_run.go",
		old: "	case <-ctx.Done():\n	}\n	patience :=", without: "	case <-ctx.Done():\n		return ctx.Err()\n	}\n	patience :=", in: queue, test: "TestAJobIsGivenBackAfterItsHandlerHasReturned"},
	{promise: "P10", name: "claims go on after an error", file: "internal/jobs/worker_claim.go",
		old: `		w.trouble.note("claiming jobs", err)`, without: `		w.trouble.note("claiming jobs", err)` + "\n		w.requestStop(\"trouble\", nil)", in: queue, test: "TestTheQueuesOwnTablesAreNoJobsFault", only: "sqlite/table"},
	{promise: "P10", name: "a start waits for the database", file: "cmd/cmsjobs/wire.go",
		old: "if err == nil || !sqlstore.Away(err) || left <= 0 || ctx.Err() != nil {", without: "if err == nil || left != -1 {", in: "./cmd/cmsjobs", test: "TestAServiceWaitsForItsDatabase"},
	{promise: "P11", name: "no answer after the message means unknown", file: "internal/handlers/mail/smtp.go",
		old: "return all(taken, Unknown, 0, err.Error()), err", without: "return all(taken, Deferred, 0, err.Error()), err", in: mails, test: "TestAServerThatDiesAtEachStep"},
	{promise: "P11", name: "what a dead run was sending is not sent again", file: "internal/handlers/mail/send.go",
		old: "			if d.known[a.key()] == Sending {", without: "			if false {", in: mails, test: "TestKilledWorkers", only: "resend_unknown=false"},
	{promise: "P11", name: "a recipient is claimed as it was read", file: "internal/handlers/mail/ledger.go",
		old: "			if got != len(keys) {", without: "			if false {", in: mails, test: "TestTwoRunsOfARetrySendOneMail", only: "sqlite"},
	{promise: "P12", name: "an archive is the one that was made", file: "internal/handlers/backup/compare.go",
		old: "	p.proof.Bytes = m.n\n", without: "	p.proof.Bytes = m.n\n	if stated != -2 {\n		return\n	}\n", in: backup, test: "TestVerifyFindsEveryDamage"},
	{promise: "P12", name: "a restore verifies first", file: "internal/handlers/backup/restore.go",
		old: "	if _, err := h.Verify(ctx, q.Backup, LevelParsed, progress); err != nil {", without: "	if false {\n		var err error", in: backup, test: "TestARestoreFromABadArchiveChangesNothing"},
	{promise: "P12", name: "restored rows are those that were dumped", file: "internal/handlers/backup/compare.go",
		old: "	if p.scratch != nil {\n", without: "	if false {\n", in: backup, test: "TestVerifyComparesTheRestoredRows"},
	{promise: "P12", name: "the newest good backup is never in the way", file: "internal/handlers/backup/retention.go",
		old: "n > 0 && r.MaxBytes > 0", without: "n >= 0 && r.MaxBytes > 0", in: backup, test: "TestRetentionKeepsWhatItsRulesName"},
	{promise: "P13", name: "every end is in the history", file: "internal/jobs/sqlstore/settle.go",
		old: "{s.recordRuns, s.freePlaces,", without: "{s.freePlaces,", in: store, test: "TestAccountsBalance", only: "sqlite"},
	{promise: "P14", name: "a server that takes no lock is found out", file: "internal/jobs/sqlstore/probe.go",
		old: "if beside, err := s.beside(ctx, name); err != nil || beside != 0 {", without: "if _, err := s.beside(ctx, name); err != nil {", in: store, test: "TestTheProbeFindsTheMode"},
}
