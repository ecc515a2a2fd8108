package main

const (
	pools = "./internal/php"
	rows  = "./internal/jobs/phprows"
)

// guardsOfPHP keep the promises for PHP's own jobs.
var guardsOfPHP = []guard{
	{
		promise: "P3",
		name:    "PHP's word on a job is written under its lease",
		file:    "internal/jobs/phprows/settle.go",
		old:     "			if n != int64(len(g.IDs)) {",
		without: "			if n < 0 {",
		in:      rows,
		test:    "TestALostLeaseChangesNothing",
		only:    "mariadb/indexed=false",
	},
	{
		promise: "P1",
		name:    "a failed job of PHP's is copied and deleted in one transaction",
		file:    "internal/jobs/phprows/settle.go",
		old:     `	n, err := s.Exec(ctx, t.Main, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE id = %d AND %s",`,
		without: `	n, err := s.Exec(ctx, s.DB, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE id = %d AND %s",`,
		in:      rows,
		test:    "TestAFailedJobBesideALostLeaseIsCopiedOnce",
		only:    "mariadb/indexed=false",
	},
	{
		promise: "P6",
		name:    "a PHP job is killed a second after its time-out",
		file:    "internal/php/process_job.go",
		old:     `		x.kill("killed: it went on after its time-out")`,
		without: "		x.setAlarm()",
		in:      pools,
		test:    "TestAJobThatGoesOnAfterItsTimeoutIsKilledWithItsChildren",
	},
	{
		promise: "P6",
		name:    "and with it what it has started",
		file:    "internal/php/kernel_unix.go",
		old:     "syscall.Kill(-p.Pid, syscall.SIGKILL)",
		without: "syscall.Kill(p.Pid, syscall.SIGKILL)",
		in:      pools,
		test:    "TestAJobThatGoesOnAfterItsTimeoutIsKilledWithItsChildren",
	},
	{
		promise: "P6",
		name:    "an alarm of an earlier job kills no other",
		file:    "internal/php/process_job.go",
		old:     "	case x.due.After(x.c.Now()):",
		without: "	case x == nil:",
		in:      pools,
		test:    "TestAnAlarmOfAnEarlierJobKillsNoOther",
	},
	{
		promise: "P6",
		name:    "a job that kills its process again and again is failed",
		file:    "internal/php/process_job.go",
		old:     "	case j.Crashes == x.c.MaxCrashes:",
		without: "	case j == nil:",
		in:      pools,
		test:    "TestAJobThatKillsItsProcessIsFailed",
		only:    "crash",
	},
	{
		promise: "P5",
		name:    "what no PHP process asks for is released",
		file:    "internal/php/ahead.go",
		old:     "	if now.Sub(c.moved) < heldAhead {",
		without: "	if !now.IsZero() {",
		in:      pools,
		test:    "TestWhatNobodyAsksForGoesBack",
	},
	{
		promise: "P5",
		name:    "so is what a dead PHP process had not read",
		file:    "internal/php/process_job.go",
		old:     "unread(x.in) > 0",
		without: "unread(x.in) < 0",
		in:      pools,
		test:    "TestAJobThatItsProcessHasNotReadIsNotCounted",
	},
}
