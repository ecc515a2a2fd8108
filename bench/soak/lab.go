package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// lease is short, so that an hour sees many of them end.
const lease = 6 * time.Second

// lab is the site, its servers, the program under test and the observers.
type lab struct {
	dir, site      string // a folder of ours; the CMS's, on its own small disk where we may mount one
	disks          []string
	binary, skewed string
	server         *jobstest.Server
	db             *sqlx.DB
	toxics         *toxiproxy
	mails          *mailSink
	hooks          *hookSink
	team           []*worker
	load           *load
	processes      int // of the team, at least
	keep           bool
	begun          time.Time
	dbClock        *jobstest.MovableClock // nil where libfaketime is not installed

	mu     sync.Mutex
	faults []fault
	jumps  []jump
	stops  []time.Duration // from TERM to the exit while the server hung
	opened int             // circuit breakers
	brief  map[string]int  // short-lived workers, by how they ended

	balanced, unbalanced int
	samples              []sample
	notes                []string // violations that no single job shows
}

// newLab builds and starts everything. The lab is returned with an error, too,
// so that what was started can be ended.
func newLab(ctx context.Context, processes int, keep bool) (*lab, error) {
	l := &lab{processes: processes, keep: keep, brief: map[string]int{}}
	for _, step := range []func(context.Context) error{l.folders, l.build, l.startServers, l.makeSite, l.configure,
		l.startTeam} {
		if err := step(ctx); err != nil {
			return l, err
		}
	}
	l.load = newLoad(l)
	return l, nil
}

// folders makes the lab's folder and, for root, two small disks that can be full.
func (l *lab) folders(context.Context) (err error) {
	if l.dir, err = os.MkdirTemp("", "cmsjobs-soak-"); err != nil {
		return err
	}
	if err := os.Chmod(l.dir, 0o755); err != nil { //nolint:gosec // the database's account must come through it
		return err
	}
	for _, name := range []string{"database", "cms", "logs"} {
		if err := os.Mkdir(filepath.Join(l.dir, name), 0o777); err != nil {
			return err
		}
	}
	for name, size := range map[string]string{"database": "3g", "cms": "3g"} {
		dir := filepath.Join(l.dir, name)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0777,size="+size); err != nil {
			say("no full disk, as mounting needs root: %v", err)
			break
		}
		l.disks = append(l.disks, dir)
	}
	l.site = filepath.Join(l.dir, "cms", "site")
	return nil
}

// build makes the program, once as it is and once with a clock that can be wrong.
func (l *lab) build(ctx context.Context) error {
	l.binary, l.skewed = filepath.Join(l.dir, "cmsjobs"), filepath.Join(l.dir, "cmsjobs-skewed")
	if err := command(ctx, "go", "build", "-tags", "nodynamic", "-o", l.binary, "./cmd/cmsjobs"); err != nil {
		return err
	}
	overlay, err := wrongClock(ctx, l.dir)
	if err != nil {
		return err
	}
	return command(ctx, "go", "build", "-tags", "nodynamic", "-overlay", overlay, "-o", l.skewed, "./cmd/cmsjobs")
}

func (l *lab) startServers(ctx context.Context) (err error) {
	if len(l.disks) > 0 {
		if err := os.Setenv("TMPDIR", filepath.Join(l.dir, "database")); err != nil {
			return err
		}
	}
	if l.server, err = jobstest.NewMariaDB("--innodb-flush-log-at-trx-commit=1",
		"--innodb-buffer-pool-size=256M"); err != nil {
		return err
	}
	if err := os.Unsetenv("TMPDIR"); err != nil {
		return err
	}
	if l.dbClock, err = jobstest.NewMovableClock(l.server, l.server.Dir); err != nil {
		say("the database's clock does not jump: %v", err)
		l.dbClock = nil
	}
	if err := l.server.Start(); err != nil {
		return err
	}
	admin, err := sqlx.Connect("mysql", jobstest.MySQLDSN(l.server.Port, ""))
	if err != nil {
		return err
	}
	// The program's account is not root, whom read_only does not stop.
	for _, statement := range []string{"CREATE DATABASE cms CHARACTER SET utf8mb4", "CREATE USER cms@'%'",
		"GRANT ALL ON cms.* TO cms@'%'"} {
		_, failed := admin.ExecContext(ctx, statement)
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, admin.Close()); err != nil {
		return err
	}
	if l.db, err = database.Connect(ctx, database.ConnectOptions{
		DSN: fmt.Sprintf("mysql://root@127.0.0.1:%d/cms", l.server.Port)}); err != nil {
		return err
	}
	if l.mails, err = newMailSink(); err != nil {
		return err
	}
	if l.hooks, err = newHookSink(); err != nil {
		return err
	}
	l.toxics, err = startToxiproxy(ctx, l.dir, map[string]int{"database": l.server.Port, "mail": l.mails.port})
	return err
}

func (l *lab) dsn(port int) string { return fmt.Sprintf("mysql://cms@127.0.0.1:%d/cms", port) }

// makeSite fills the database and the folder as the demo does.
func (l *lab) makeSite(ctx context.Context) error {
	if err := command(ctx, l.binary, "--dsn", l.dsn(l.server.Port), "demo", "--seed-only", "--dir",
		l.site); err != nil {
		return err
	}
	for key, value := range map[string]string{
		"indexnow_enabled": "1", "indexnow_api_key": "0123456789abcdef0123456789abcdef"} {
		if _, err := l.db.ExecContext(ctx, "INSERT INTO settings (`key`, value) VALUES (?, ?)", key,
			value); err != nil {
			return err
		}
	}
	// What a plugin left in the queue stands in front of everything, and another's
	// trigger refuses some publications.
	for _, statement := range []string{
		fmt.Sprintf("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) SELECT "+
			"'default', '%s', 0, NULL, UNIX_TIMESTAMP() - 3600, UNIX_TIMESTAMP() - 3600 FROM seq_1_to_%d",
			foreignPayload, foreignRows),
		"CREATE TRIGGER refuse BEFORE UPDATE ON posts FOR EACH ROW IF NEW.name LIKE 'refused %' THEN SIGNAL SQLSTATE " +
			"'45000' SET MESSAGE_TEXT = 'a plugin refuses it'; END IF",
	} {
		if _, err := l.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// patientKinds are tried again often and soon: what is measured is whether work
// is lost, not how long a site waits.
var patientKinds = []string{"sitemap.generate", "sitemap.indexnow", "media.processImage", "mail.send",
	"backup.generate", "backup.verify", "analytics.process",
	"cache.clear", "cache.clearExpired", "logs.cleanup", "queue.clean", "maintenance.cleanup", "content.publish",
	"notification.send", "webhook.deliver", "cmsjobs.probe"}

func (l *lab) configure(context.Context) error {
	var kinds strings.Builder
	for _, kind := range patientKinds {
		fmt.Fprintf(&kinds, "  %s: {max_attempts: 30, backoff: [1s, 1s, 2s, 5s]}\n", kind)
	}
	text := fmt.Sprintf(`cms: {dir: %q, url: "https://demo.example"}
queue: {lease: %s, poll_first: 50ms, poll: 500ms, grace: %s, heartbeat_stale: 30s,
  export_dir: %q, internal_rows: [cmsjobs.probe, webhook.deliver]}
types:
%sschedule:
  entries:
    soak: {cron: "* * * * *", type: cmsjobs.probe, payload: {sleep: 10ms}, policy: all}
http: {admin_password: soak-soak-soak}
mail: {driver: smtp, host: 127.0.0.1, port: %d, encryption: none,
  from: editor@demo.example, timeout: 5s, rate: {per_minute: 0}}
webhook: {timeout: %s, allow_private: [127.0.0.0/8], allow_http: true}
indexnow: {endpoints: ["%s/indexnow"], write_key: true}
notify: {mail: false}
media: {sizes: ["thumb:150x150", "medium:300x300", "large:800x800:fit"]}
backup: {keep: 3, free_space: 64MiB, alert_after: 0s, min_interval: 0s}
publish: {watch: true, every: 5s}
log: {level: warn, format: text}
`, l.site, lease, grace, filepath.Join(l.dir, "export"), kinds.String(), l.toxics.ports["mail"], 3*lease,
		l.hooks.url(1))
	return os.WriteFile(l.configFile(), []byte(text), 0o600)
}

func (l *lab) configFile() string { return filepath.Join(l.dir, "cmsjobs.yaml") }

// cmsjobs runs one command of the program beside its workers.
func (l *lab) cmsjobs(ctx context.Context, words ...string) (string, error) {
	c := exec.CommandContext(ctx, l.binary, append([]string{"--config", l.configFile(), "--dsn", l.dsn(l.server.Port)},
		words...)...)
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("cmsjobs %s: %w: %s", strings.Join(words, " "), err, failed.Stderr)
	}
	return string(out), err
}

// did notes harm that may be felt from now until so much later.
func (l *lab) did(name string, felt time.Duration) { l.harmed(fault{name: name}, felt) }

// delayed notes harm that may keep work waiting, and may repeat none.
func (l *lab) delayed(name string, felt time.Duration) {
	l.harmed(fault{name: name, delays: true}, felt)
}

func (l *lab) harmed(f fault, felt time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.at = time.Now()
	f.until = f.at.Add(felt)
	l.faults = append(l.faults, f)
}

// close ends everything, and removes the folder unless it shows why a run was bad.
func (l *lab) close(bad bool) error {
	for _, w := range l.team {
		w.kill()
	}
	if l.toxics != nil {
		l.toxics.close()
	}
	for _, end := range []func() error{l.mails.close, l.hooks.close} {
		if err := end(); err != nil {
			say("closing an observer: %v", err)
		}
	}
	if l.db != nil {
		l.db.Close()
	}
	if l.server != nil {
		l.server.Stop()
	}
	for _, disk := range l.disks {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			say("%s stays mounted: %v", disk, err)
		}
	}
	if bad || l.keep {
		say("the logs are in %s", l.dir)
		return nil
	}
	return os.RemoveAll(l.dir)
}

func command(ctx context.Context, name string, words ...string) error {
	out, err := exec.CommandContext(ctx, name, words...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(words, " "), err, out)
	}
	return nil
}
