package jobstest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onOneServer are the tests that run on only one of MariaDB and MySQL, and why.
// Everything else that runs on one of them runs on both.
var onOneServer = map[string]string{
	"bench/soak/run_test.go TestTheJudgeReadsWhenARunBegan":                     "what is judged is the history, by SQL that TestConformance runs on both",
	"internal/feed/knock_test.go TestTheLaravelPackageNotifies":                 "the datagram is PHP's; the table behind it is the same",
	"internal/feed/galera_test.go TestBinlogOfACluster":                         "Galera is MariaDB's; its feed on one server runs on both",
	"internal/cli/service_sdk_test.go TestTheJavaScriptSDK":                     "speaks HTTP; the database behind it is TestConformance's",
	"internal/cli/service_trace_test.go TestAJobIsTracedFromItsEnqueueToItsEnd": "traces do not depend on the database",
	"internal/cli/service_own_types_test.go TestTypesOfOtherPrograms": "programs speak HTTP; the table of their types is written on " +
		"all servers by internal/remote's tests",
	"internal/cli/service_enqueue_test.go TestTheSameJobFromEverywhere":       "one snippet of SQL for both; it runs on MySQL",
	"internal/cli/service_conditions_test.go TestConditionsAreSeenEverywhere": "four minutes; what is measured runs on both in internal/jobs/queue",
	"internal/cli/service_conditions_test.go openDatabase":                    "the server of TestConditionsAreSeenEverywhere",
	"internal/cli/service_restore_post_test.go TestAPostIsRestoredOverHTTP":   "over HTTP and by a worker; the restore itself runs on both in internal/handlers/backup",
	"internal/handlers/backup/moment_test.go archivedSite": "retention counts segments " +
		"by their names; archive and replay run on both",
	"internal/cli/service_restore_post_test.go TestTheDatabaseOfAnySecondByTheCommandLine": "the command and the " +
		"service's loop; archive and replay run on both",
	"internal/handlers/backup/binlog/kill_test.go TestKilledAtAnyMomentTheArchiveGoesOn": "a process that is killed " +
		"leaves the same; what an archiver that dies leaves is tested on both",
	"internal/handlers/backup/log_test.go TestAMissingLogIsSaidOnce": "what is logged of a log that is not there " +
		"comes from one check, which runs on both",
	"internal/handlers/backup/log_test.go TestNoMomentBehindALogThatCannotBeRead": "the end of the archive is " +
		"compared with a moment; archive and replay run on both",
	"internal/handlers/backup/moment_test.go TestAMomentFromAnotherHost": "places differ, not servers; archive and " +
		"replay run on both",
	"internal/handlers/backup/binlog/faults_test.go TestOnlyWhatWasSignedIsApplied": "signatures are checked before " +
		"a server is asked",
	"setup_test.go TestTheRemovalOfSetupKeepsLaterBackups": "files in a folder; TestSetupAndItsRemoval runs on both",
	"internal/sites/sites_test.go TestAFloodInOneSiteDelaysTheOthersByOneJob": "the slots are shared in the " +
		"process; ten sites on MySQL, and on SQLite",
	"internal/sites/sites_test.go TestTenIdleSitesCostLittle": "counts statements and connections, which are the " +
		"same on both",
	"internal/cli/service_stop_test.go TestAServiceWaitsForItsDatabase":                    "a network that refuses is the same for both",
	"internal/cli/usage_test.go TestAPriorityIsKeptOrRefused":                              "which shape a table has is found alike on both; package tables tests it",
	"internal/web/backup_contents_browser_test.go TestAPersonRestoresTheDatabaseToAMoment": "a browser; the restore to a moment itself runs on both in internal/handlers/backup",
	"internal/cli/service_idle_test.go TestAnIdleServiceAsksLittle": "counts the statements of a program, " +
		"which are the same on both",
	"internal/cli/service_stop_test.go siteOnOwnServer":                           "the server is only paused or killed; one that is gone refuses connections, which is the same for both",
	"internal/handlers/mail/queue_bench_test.go queueTime":                        "a benchmark: its figures are of one server",
	"internal/jobs/clock_jump_test.go TestAJumpOfTheDatabasesClockRepeatsNothing": "libfaketime changes the clock of Debian's MariaDB; the tests' MySQL has a separate C library",
	"internal/jobs/full_disk_test.go TestAFullDiskChargesAndRepeatsNothing":       "on a full disk a COMMIT of MySQL with a binary log waits for space instead of failing",
	"internal/jobs/tidb_test.go TestEachJobRunsOnceOnTiDB": "TiDB beside one MySQL; many processes run on both in " +
		"TestAHundredSlotsInFourProcessesRunEachJobOnce",
	"internal/jobs/sql_errors_test.go dialect":                                                  "says that both speak MySQL's SQL",
	"compose_test.go database":                                                                  "docker-compose.yml names one image",
	"docs_languages_test.go runPHP":                                                             "the page's PHP enqueues by Laravel, which writes the same row on both",
	"docs_shell_test.go seed":                                                                   "a sample site for the commands of a page; what they do runs on both elsewhere",
	"internal/handlers/analytics/load_test.go BenchmarkCollector":                               "a benchmark: its figures are of one server",
	"internal/handlers/backup/dump/peer_test.go BenchmarkBesidePeers":                           "a benchmark beside MariaDB's own tools",
	"internal/handlers/mail/process_test.go TestAThousandJobsStayWithinTheLimit":                "the limit is kept by rows of ours, which TestConformance runs on both; it takes a minute",
	"internal/handlers/sitemap/bench_test.go BenchmarkMillion":                                  "a benchmark: its figures are of one server",
	"internal/handlers/sitemap/bench_test.go million":                                           "a benchmark: its figures are of one server",
	"internal/handlers/analytics/bench_test.go BenchmarkImportAndRollUp":                        "a benchmark: its figures are of one server",
	"internal/jobs/jobstest/server_test.go TestAKilledServerComesBackWithItsData":               "the way servers are killed is the same for all",
	"internal/handlers/backup/portability_test.go TestMysqldumpOfAServerWithGTIDsIsVerified":    "MariaDB's GTIDs are not written into dumps",
	"internal/jobs/queue/packets_test.go TestPacketsKeepToTheirConnection":                      "packets are MySQL's: MariaDB settles in one statement",
	"internal/jobs/queue/packets_test.go TestWithoutPacketsJobsAreSettled":                      "packets are MySQL's: MariaDB settles in one statement",
	"internal/jobs/queue/open_test.go TestAnEngineWithoutTransactionsUnderGTIDs":                "MariaDB enforces no GTID consistency",
	"internal/jobs/history/history_test.go BenchmarkGroups":                                     "a benchmark: its figures are of one server",
	"internal/handlers/backup/portability_test.go TestABackupOfAServerWithABinaryLogIsVerified": "GTIDs that refuse tables without transactions are MySQL's",
}

// ofBoth are names of this package that mean a test on both servers.
var ofBoth = []string{"EachMySQL", "Engines", "MySQLs"}

// TestWhatRunsOnMariaDBRunsOnMySQL reads every test of the project: one that names
// one of the two servers names the other, too, or stands in the table, which it prints.
func TestWhatRunsOnMariaDBRunsOnMySQL(t *testing.T) {
	one := map[string]bool{}
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if is && oneOf(f, file.Name.Name == "jobstest") {
				one[filepath.ToSlash(name)+" "+f.Name.Name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if onOneServer[name] == "" {
			t.Errorf("%s runs on one of MariaDB and MySQL only, and the table says no reason", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(onOneServer)) {
		if !one[name] {
			t.Errorf("%s is in the table and does not exist, or runs on both", name)
		}
		t.Logf("%-90s %s", name, onOneServer[name])
	}
}

// oneOf says whether a function names one of the two servers and not the other. Within
// this package the names have no qualifier.
func oneOf(f *ast.FuncDecl, within bool) bool {
	said := map[string]bool{}
	note := func(name string) {
		switch {
		case slices.Contains(ofBoth, name):
			said["MariaDB"], said["MySQL"] = true, true
		case name == "MariaDB", name == "MySQL":
			said[name] = true
		case name == "OwnMariaDB", name == "NewMariaDB":
			said["MariaDB"] = true
		case name == "OwnMySQL", name == "NewMySQL":
			said["MySQL"] = true
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr: // a question which of them it is
			return n.Op != token.EQL && n.Op != token.NEQ
		case *ast.KeyValueExpr: // what is otherwise on one of them
			ast.Inspect(n.Value, visit)
			return false
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && x.Name == "jobstest" {
				note(n.Sel.Name)
			}
		case *ast.Ident:
			if within {
				note(n.Name)
			}
		}
		return true
	}
	ast.Inspect(f, visit)
	return said["MariaDB"] != said["MySQL"]
}
