package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Mysqldump dumps with the installed client instead. It knows no rows or
// checksums (Rows is −1), and its pieces name no tables. The password goes
// through an option file that only this user can read, never through the
// command line.
func Mysqldump(ctx context.Context, dsn string, o Options, sink Sink) (Summary, error) {
	s, err := open(ctx, dsn)
	if err != nil {
		return Summary{}, fmt.Errorf("opening the database for the dump: %w", err)
	}
	defer s.close()
	o.LogPosition = false // the tool takes its own snapshot
	d := &dumper{session: s, options: o}
	if err := d.begin(ctx); err != nil { // only for the figures
		return Summary{}, err
	}
	catalog, err := d.catalog(ctx)
	if err != nil {
		return Summary{}, err
	}
	if d.structures, err = d.structure(ctx); err != nil {
		return Summary{}, err
	}
	chosen := catalog.only(o)
	for _, t := range chosen.tables {
		if _, err := d.createTable(ctx, t.name); err != nil {
			return Summary{}, err
		}
	}
	d.describe(chosen)
	programs, err := d.programs(ctx, chosen)
	if err != nil {
		return Summary{}, err
	}
	_, late, err := d.views(ctx, chosen, programs.functions())
	if err != nil {
		return Summary{}, err
	}
	tool, err := clientOf(ctx, d.mariaDB)
	if err != nil {
		return Summary{}, err
	}
	file, err := optionFile(dsn)
	if err != nil {
		return Summary{}, err
	}
	defer os.Remove(file)
	d.out = newWriter(ctx, o, sink)
	for _, run := range d.mysqldumpRuns(catalog, chosen, late) {
		d.out.start(run.part, "")
		if err = stream(ctx, d.out, nil, tool, append([]string{"--defaults-file=" + file},
			run.args...)...); err != nil {
			break
		}
	}
	if err = errors.Join(err, d.out.close()); err != nil {
		return Summary{}, fmt.Errorf("dumping the database %s with %s: %w", d.database, tool, err)
	}
	d.summary.Rows, d.summary.Bytes = -1, d.out.bytes
	d.summary.Schema = hashOf(d.summary.Objects)
	return d.summary, nil
}

// clientOf finds the dump program of the server's own maker: MariaDB's writes values
// of MySQL's generated columns, which no server takes back, and MySQL's knows no
// sequences. Debian calls MariaDB's mysqldump, too.
func clientOf(ctx context.Context, mariaDB bool) (string, error) {
	maker, names := "MySQL", []string{"mysqldump"}
	if mariaDB {
		maker, names = "MariaDB", []string{"mariadb-dump", "mysqldump"}
	}
	for _, name := range names {
		path, err := installed(name)
		if err != nil {
			continue
		}
		version, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return "", fmt.Errorf("asking %s for its version: %w", path, err)
		}
		if IsMariaDB(string(version)) == mariaDB {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s of %s is not installed here, and another maker's makes dumps that do not restore: "+
		"install it, or take the tool \"own\"",
		strings.Join(names, " or "), maker)
}

// mysqlSwitches are what MySQL's own program needs: no statements that only a
// replica's new server takes, no question that needs the right PROCESS, none that
// older servers do not know.
var mysqlSwitches = []string{"--set-gtid-purged=OFF", "--no-tablespaces", "--loose-column-statistics=0"}

type mysqldumpRun struct {
	part Part
	args []string
}

// mysqldumpRuns are the calls that make the same two files as our own dumper.
func (d *dumper) mysqldumpRuns(all, chosen catalog, late []view) []mysqldumpRun {
	base := []string{"--single-transaction", "--quick", "--hex-blob", "--skip-add-locks", "--skip-lock-tables",
		"--default-character-set=utf8mb4", "--skip-triggers"}
	tables := []string{"--default-character-set=utf8mb4", "--no-data", "--no-create-info", "--triggers",
		"--skip-lock-tables"}
	if !d.mariaDB {
		base, tables = append(base, mysqlSwitches...), append(tables, mysqlSwitches...)
	}
	var data, empty []string
	left := map[string]bool{}
	for _, t := range all.tables {
		left[t.name] = true
	}
	for _, v := range all.views {
		left[v.name] = true
	}
	for _, t := range chosen.tables {
		if d.options.Empty != nil && d.options.Empty(t.name) {
			empty = append(empty, t.name)
		} else {
			delete(left, t.name)
		}
		d.summary.Tables = append(d.summary.Tables, Table{Name: t.name, Engine: t.engine, Rows: -1,
			Empty: left[t.name], Unsafe: !transactional(t.engine)})
	}
	for _, v := range chosen.views {
		delete(left, v.name)
	}
	var lateNames []string
	for _, v := range late { // the tool itself would write them before their functions
		left[v.name] = true
		lateNames = append(lateNames, v.name)
	}
	var others []string // not even their triggers
	for name := range left {
		ignore := "--ignore-table=" + d.database + "." + name
		data = append(data, ignore)
		if !slices.Contains(empty, name) {
			others = append(others, ignore)
		}
	}
	runs := []mysqldumpRun{{Main, append(append(base[:len(base):len(base)], data...), "--", d.database)}}
	if len(empty) > 0 {
		runs = append(runs, mysqldumpRun{
			Main, append(append(base[:len(base):len(base)], "--no-data", "--", d.database), empty...)})
	}
	extra := append(tables, others...)
	if !chosen.partial {
		extra = append(extra, "--routines", "--events")
	}
	runs = append(runs, mysqldumpRun{Extra, append(extra, "--", d.database)})
	if len(late) > 0 {
		runs = append(runs, mysqldumpRun{
			Extra, append(append(base[:len(base):len(base)], "--", d.database), lateNames...)})
	}
	return runs
}

// optionFile writes a DSN's account as an option file of the client (0600).
func optionFile(dsn string) (name string, err error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "cmsjobs-client-*.cnf") // made 0600
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[client]\nuser=%s\npassword=%s\n", optionValue(c.User), optionValue(c.Passwd))
	if c.Net == "unix" {
		fmt.Fprintf(&b, "socket=%s\n", optionValue(c.Addr))
	} else {
		host, port, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return "", errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		fmt.Fprintf(&b, "protocol=tcp\nhost=%s\nport=%s\n", optionValue(host), port)
	}
	_, err = f.WriteString(b.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// optionValue quotes as the client's option files want it.
func optionValue(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func installed(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed here", strings.Join(names, " or "))
}

// stream runs a program and writes what it prints into the dump.
func stream(ctx context.Context, out *writer, env []string, program string, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cmd.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &limited{&complaint, 4096}
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		out.write(p)
		return len(p), out.err()
	})
	if err := cmd.Run(); err != nil {
		return errors.Join(out.err(), fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String())))
	}
	return out.err()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// limited keeps the first bytes of a program's complaints.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}
