package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// newLoggedSite is a site on a server that writes a binary log, by the real clock.
func newLoggedSite(t *testing.T, engine jobstest.Engine) *site {
	t.Helper()
	server := jobstest.Own(t, engine, "--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0",
		"--log-bin-trust-function-creators=1")
	t.Setenv("CMSJOBS_TEST_"+strings.ToUpper(string(engine))+"_PORT", fmt.Sprint(server.Port))
	jobstest.AsRoot(t)
	s := newSite(t, engine)
	s.c.Now = time.Now
	return s
}

// second waits for the end of the server's second and says which it was.
func (s *site) second(t *testing.T) time.Time {
	t.Helper()
	var begun, now int64
	for begun == now {
		if err := s.Get(&now, "SELECT UNIX_TIMESTAMP()"); err != nil {
			t.Fatal(err)
		}
		if begun == 0 {
			begun = now
		}
	}
	return time.Unix(begun, 0)
}

func (s *site) rows(t *testing.T, dsn string, tables ...string) map[string]string {
	t.Helper()
	is, err := dump.MySQL(t.Context(), dsn, dump.Options{Tables: tables},
		func(dump.Part, string, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, table := range is.Tables {
		sums[table.Name] = fmt.Sprint(table.Rows, " ", table.Checksum)
	}
	return sums
}

var errNoOrder = errors.New("nobody ordered it")

// moment plans and carries out.
func moment(t *testing.T, h *Handler, at time.Time, into string) restore.MomentResult {
	t.Helper()
	q, err := h.FindMoment(t.Context(), at, "")
	if err != nil {
		t.Fatal(err)
	}
	q.IntoDSN = into
	plan, err := h.PlanMoment(t.Context(), q)
	if err != nil || len(plan.Refused) > 0 {
		t.Fatalf("%v, refused %q", err, plan.Refused)
	}
	if _, err := h.Moment(t.Context(), q, nil); !errors.Is(err, restore.ErrUnconfirmed) {
		t.Fatalf("without the word: %v", err)
	}
	q.Confirm = plan.Token
	q.Begin = func(context.Context) error { return errNoOrder }
	if done, err := h.Moment(t.Context(), q, nil); !errors.Is(err, errNoOrder) || done.Safety != nil {
		t.Fatalf("without an order: %v", err)
	}
	q.Begin = nil
	done, err := h.Moment(t.Context(), q, nil)
	if err != nil || len(done.Problems) > 0 {
		t.Fatalf("%v, problems %q", err, done.Problems)
	}
	if done.Transactions != plan.Transactions {
		t.Errorf("the plan had %d transactions, applied were %d", plan.Transactions, done.Transactions)
	}
	return done
}

func TestTheSiteIsBroughtToAMoment(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newLoggedSite(t, engine)
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		s.c.Options.Recipients, s.c.Options.Identities = []age.Recipient{identity.Recipient()}, []age.Identity{identity}
		h := s.handler(t)
		if _, err := h.FindMoment(t.Context(), time.Now(), ""); !errors.Is(err, ErrNoMoment) {
			t.Errorf("without a backup: %v", err)
		}
		before := time.Now().Add(-time.Minute)
		_, b := s.backup(t, h)
		if b.Log == nil || b.Log.Server == "" || engine == jobstest.MariaDB != (!strings.Contains(b.Log.GTID, ":")) {
			t.Fatalf("the position is %+v", b.Log)
		}
		s.MustExec("INSERT INTO posts VALUES (1000, 'later', 'x')")
		s.MustExec("UPDATE posts SET title = 'changed' WHERE id < 100")
		s.MustExec("CREATE TABLE pages (id INT PRIMARY KEY)")
		s.MustExec("INSERT INTO pages VALUES (1), (2)")
		want := s.rows(t, s.DSN, "posts", "pages")
		at := s.second(t)
		s.MustExec("INSERT INTO posts VALUES (1001, 'too late', 'x')")
		s.MustExec("DROP TABLE pages")
		s.MustExec("CREATE TABLE stays (id INT PRIMARY KEY)")

		into, err := h.IntoNamed("recovered")
		if err != nil {
			t.Fatal(err)
		}
		done := moment(t, h, at, into)
		if got := s.rows(t, into, "posts", "pages"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("restored %v, want %v", got, want)
		}
		if done.Next.IsZero() || !slices.Contains(done.WithoutRows, "cache") || done.Statements == 0 {
			t.Errorf("%+v", done)
		}
		if _, err := s.Exec("SELECT 1 FROM pages"); err == nil {
			t.Error("the site was changed by a restore into another database")
		}
		if _, err := h.IntoNamed(databaseName(t, s.DSN)); err == nil {
			t.Error("the site's own database is taken for a new one")
		}
		testSiteToMoment(t, s, h, at, want)
		if _, err := h.FindMoment(t.Context(), before, ""); !errors.Is(err, ErrNoMoment) {
			t.Errorf("before the first backup: %v", err)
		}
		if _, err := h.FindMoment(t.Context(), time.Now().Add(time.Hour), ""); !errors.Is(err, ErrNoMoment) {
			t.Errorf("in an hour: %v", err)
		}
	})
}

func testSiteToMoment(t *testing.T, s *site, h *Handler, at time.Time, want map[string]string) {
	t.Helper()
	done := moment(t, h, at, "")
	if got := s.rows(t, s.DSN, "posts", "pages"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the site has %v, want %v", got, want)
	}
	if done.Safety == nil || done.Safety.Status != "complete" {
		t.Errorf("the backup before: %+v", done.Safety)
	}
	if _, err := s.Exec("SELECT 1 FROM stays"); err != nil {
		t.Errorf("a table that the moment did not have is gone: %v", err)
	}
	var left []string
	if err := s.Select(&left, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE "+
		"'cmsjobs\\_verify\\_%'"); err != nil || len(left) > 0 {
		t.Errorf("temporary databases: %q, %v", left, err)
	}
	if tables, err := h.Leftovers(t.Context()); err != nil || len(tables) > 0 {
		t.Errorf("left over: %q, %v", tables, err)
	}
	// The log goes on behind the exchange.
	s.MustExec("INSERT INTO posts VALUES (2000, 'after the restore', 'x')")
	later := s.rows(t, s.DSN, "posts", "pages")
	now := s.second(t)
	into, err := h.IntoNamed("recovered_again")
	if err != nil {
		t.Fatal(err)
	}
	moment(t, h, now, into)
	if got := s.rows(t, into, "posts", "pages"); fmt.Sprint(got) != fmt.Sprint(later) {
		t.Errorf("after the restore: %v, want %v", got, later)
	}
}

// archivedSite is a site with backups and the log behind each of them.
func archivedSite(t *testing.T, backups int) (h *Handler, made []catalog.Stored, reach func() binlog.Reach) {
	t.Helper()
	s := newLoggedSite(t, jobstest.MariaDB)
	h = s.handler(t)
	a := h.newArchiver()
	for i := range backups {
		_, b := s.backup(t, h)
		made = append(made, b)
		s.MustExec(fmt.Sprintf("INSERT INTO posts VALUES (%d, 'x', 'y')", 5000+i))
		s.MustExec("FLUSH BINARY LOGS")
		if text, err := h.archiveOnce(t.Context(), a); text != "" || err != nil {
			t.Fatal(text, err)
		}
		s.second(t) // files are known by the second
	}
	return h, made, func() binlog.Reach {
		t.Helper()
		all, err := h.LogReach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all["local"]
	}
}

// The log of the oldest backup that is kept stays, and what is older goes.
func TestRetentionRemovesTheLogThatNoBackupNeeds(t *testing.T) {
	h, made, reach := archivedSite(t, 4)
	whole := reach()
	if whole.Missing != "" || len(whole.Windows) != 1 || !whole.Windows[0].From.Equal(made[0].Log.Snapshot) {
		t.Fatalf("%+v", whole)
	}
	if err := h.pruneLog(t.Context(), "local", made[2:]); err != nil {
		t.Fatal(err)
	}
	all, err := h.List(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range made {
		chain, err := binlog.ChainOf(t.Context(), h.logPlaces()["local"], binlog.Base{Position: b.Log.LogPosition,
			Snapshot: b.Log.Snapshot})
		if err != nil || (chain.Missing == "") != (i >= 2) {
			t.Errorf("backup %d: %q, %v", i, chain.Missing, err)
		}
	}
	if after := reach(); after.Bytes >= whole.Bytes || !after.Windows[0].From.Equal(made[2].Log.Snapshot) || len(all) != 4 {
		t.Errorf("%+v, before %+v", after, whole)
	}
	testLogWithinTheLimit(t, h, made, reach)
	if err := h.pruneLog(t.Context(), "local", nil); err != nil {
		t.Fatal(err)
	}
	if after := reach(); len(after.Windows) == 0 {
		t.Error("without a backup that is known, the log was removed")
	}
}

// What all may take at a place is for the backups first. The log has the rest, but that of
// the newest backup stays.
func testLogWithinTheLimit(t *testing.T, h *Handler, made []catalog.Stored, reach func() binlog.Reach) {
	t.Helper()
	fits := reach().Bytes + made[2].Size + made[3].Size
	for _, c := range []struct {
		most int64
		from catalog.Stored
	}{{fits, made[2]}, {fits - 1, made[3]}, {1, made[3]}} {
		h.c.Options.MaxBytes = c.most
		if err := h.pruneLog(t.Context(), "local", []catalog.Stored{made[3], made[2]}); err != nil {
			t.Fatal(err)
		}
		after := reach()
		if len(after.Windows) != 1 || after.Missing != "" || !after.Windows[0].From.Equal(c.from.Log.Snapshot) {
			t.Errorf("of %d bytes: %+v", c.most, after)
		}
	}
	h.c.Options.MaxBytes = 0
}

// The running service holds the log to its limit too, once an hour, but not while a
// restore may read it. The backups stay.
func TestTheLogIsHeldToItsLimitBetweenPrunes(t *testing.T) {
	h, made, reach := archivedSite(t, 2)
	now := time.Now()
	h.c.Now = func() time.Time { return now }
	taken, err := h.LogBytes(t.Context())
	if err != nil || len(taken) != 1 || taken["local"] != reach().Bytes {
		t.Errorf("the log takes %v, %v", taken, err)
	}
	h.c.Options.MaxBytes = 1
	turns := newLogTurns(h)
	turn := func(what string, from catalog.Stored) {
		t.Helper()
		if err := turns.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := h.List(t.Context(), "local")
		if after := reach(); err != nil || len(all) != len(made) || len(after.Windows) != 1 || after.Missing != "" ||
			!after.Windows[0].From.Equal(from.Log.Snapshot) {
			t.Errorf("%s: %d backups, %+v, %v", what, len(all), after, err)
		}
	}
	_, unlock, err := h.locks.Exclusive(t.Context(), "a restore")
	if err != nil {
		t.Fatal(err)
	}
	turn("during a restore", made[0])
	unlock()
	turn("within the hour", made[0])
	now = now.Add(limitEvery)
	turn("after an hour", made[1])
	turn("once more", made[1])
}

func databaseName(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ToUpper(c.DBName)
}

// A bucket and a host that is reached by SFTP hold all that a restore to a moment needs:
// the log of the server cannot be read any more.
func TestAMomentFromAnotherHost(t *testing.T) {
	s := newLoggedSite(t, jobstest.MariaDB)
	bucket, ssh := storagetest.New(t), storagetest.StartSSH(t)
	inBucket, err := storage.NewS3(storage.S3Config{Bucket: bucket.Name, Prefix: "site", Endpoint: bucket.URL,
		PathStyle: true, AccessKey: storagetest.Key, SecretKey: storagetest.Secret})
	if err != nil {
		t.Fatal(err)
	}
	bySFTP, err := storage.NewSFTP(storage.SFTPOptions{Host: ssh.Host, Port: ssh.Port, User: ssh.User,
		KeyFile: ssh.KeyFile, HostKey: ssh.Fingerprint, Dir: ssh.Dir + "/site"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bySFTP.Close() })
	s.c.Destinations = map[string]storage.Store{"s3": inBucket, "sftp": bySFTP}
	h := s.handler(t)
	s.backup(t, h)
	archive := func() {
		t.Helper()
		if text, err := h.archiveOnce(t.Context(), h.newArchiver()); text != "" || err != nil {
			t.Fatal(text, err)
		}
	}
	archive()
	s.MustExec("UPDATE posts SET title = 'changed' WHERE id < 100")
	s.MustExec("FLUSH BINARY LOGS")
	s.MustExec("INSERT INTO posts VALUES (1000, 'later', 'x')")
	want := s.rows(t, s.DSN, "posts")
	at := s.second(t)
	s.second(t) // the archive must end behind the moment
	s.MustExec("DELETE FROM posts")
	archive()
	s.c.LogDSN = s.account(t, "nobody", jobstest.MariaDB)
	for name, store := range s.c.Destinations {
		s.c.Destinations = map[string]storage.Store{name: store}
		h := s.handler(t)
		into, err := h.IntoNamed("from_" + name)
		if err != nil {
			t.Fatal(err)
		}
		moment(t, h, at, into)
		if got := s.rows(t, into, "posts"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("from %s: %v, want %v", name, got, want)
		}
	}
}
