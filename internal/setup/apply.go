package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Runner carries plans out.
type Runner struct {
	// Run runs a command of the host; input is its standard input.
	Run func(ctx context.Context, input string, command ...string) (output string, err error)
	// Say says each step; its forms are those of Texts.
	Say func(format string, args ...any)
	// Texts are the refusals, in the owner's language.
	Texts Texts
}

// Command runs a program of the host: the usual Runner.Run.
func Command(ctx context.Context, input string, command ...string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err,
			strings.TrimSpace(errs.String()+out.String()))
	}
	return out.String(), nil
}

// Apply writes what the plan says, but for Start. Nothing is changed where a foreign
// file is in the way. tables says that the service's tables are there already.
func (r Runner) Apply(p Plan, tables bool) (*Record, error) {
	record := &Record{Dir: p.Dir, Way: p.Choice.Way, Name: p.Choice.Name, Account: p.Account, Program: p.Program,
		Config: p.Config, CronLine: p.CronLine, Log: p.Log, Tables: !tables, prefix: p.Choice.Prefix}
	if p.Choice.Prefix == "" {
		record.Stop = p.Stop
	}
	record.path = record.at(p.Record)
	files := slices.Clone(p.Files)
	if p.Install != "" {
		program, err := os.ReadFile(p.Source)
		if err != nil {
			return nil, fmt.Errorf("reading this program: %w", err)
		}
		files = append(files, File{Path: p.Install, Mode: 0o755, Text: string(program),
			What: r.Texts.Say("this program")})
	}
	files, err := record.foreign(files, r.Texts)
	if err != nil {
		return nil, err
	}
	if err := record.folders(p); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := record.write(f); err != nil {
			return record, err
		}
		r.Say("wrote %s: %s", f.Path, f.What)
	}
	return record, nil
}

// foreign looks for files in the way before anything is changed, and returns those
// that have to be written, which it notes.
func (r *Record) foreign(files []File, texts Texts) (missing []File, err error) {
	if _, err := os.Lstat(r.path); err == nil {
		return nil, texts.Errorf("%s says that this service was set up already: cmsjobs setup --remove first, or "+
			"choose another --name", r.path)
	}
	var errs []error
	for _, f := range files {
		digest := sum([]byte(f.Text))
		switch same, there, err := unchanged(r.at(f.Path), digest); {
		case err != nil:
			errs = append(errs, err)
		case there && !same:
			errs = append(errs, texts.Errorf("%s is there: setup did not write it, so it stays; "+
				"move it away, or choose "+
				"another --name", f.Path))
		case !there:
			missing = append(missing, f)
			r.Files = append(r.Files, Written{Path: f.Path, SHA256: digest})
		}
	}
	return missing, errors.Join(errs...)
}

// folders makes those of all files, and notes the new ones first.
func (r *Record) folders(p Plan) error {
	var missing []string
	for _, folder := range append(slices.Clone(p.Folders), parents(p)...) {
		for at := folder; at != "/" && at != "." && !slices.Contains(missing, at); at = filepath.ToSlash(
			filepath.Dir(filepath.FromSlash(at))) {
			if _, err := os.Stat(r.at(at)); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			missing = append(missing, at)
		}
	}
	slices.Sort(missing) // a folder before what is in it
	r.Folders = missing
	for _, folder := range missing {
		if err := os.Mkdir(r.at(folder), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	}
	return r.Save()
}

func parents(p Plan) (folders []string) {
	for _, f := range p.Files {
		folders = append(folders, filepath.ToSlash(filepath.Dir(filepath.FromSlash(f.Path))))
	}
	if p.Install != "" {
		folders = append(folders, filepath.ToSlash(filepath.Dir(filepath.FromSlash(p.Install))))
	}
	return folders
}

// write puts a file in its place whole.
func (r *Record) write(f File) error {
	path := r.at(f.Path)
	staged := path + ".new"
	err := os.WriteFile(staged, []byte(f.Text), f.Mode)
	if err == nil {
		err = os.Chmod(staged, f.Mode) // whatever the umask says
	}
	if err == nil && f.Owner.Name != "" && os.Geteuid() == 0 {
		err = os.Chown(staged, f.Owner.UID, f.Owner.GID)
	}
	if err == nil {
		err = os.Rename(staged, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", f.Path, err), removed(staged))
	}
	return nil
}

func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Start starts the service, or adds the line to the account's crontab.
func (r Runner) Start(ctx context.Context, p Plan) error {
	if p.Choice.Prefix != "" {
		return nil
	}
	if p.CronLine != "" {
		if err := r.crontab(ctx, p.Account, func(lines []string) []string {
			if slices.Contains(lines, p.CronLine) {
				return lines
			}
			return append(lines, p.CronLine)
		}); err != nil {
			return err
		}
		r.Say("added to the crontab of %s: %s", p.Account.Name, p.CronLine)
	}
	for _, command := range p.Start {
		if _, err := r.Run(ctx, "", command...); err != nil {
			return err
		}
		r.Say("ran %s", strings.Join(command, " "))
	}
	return nil
}

// crontab changes an account's lines.
func (r Runner) crontab(ctx context.Context, a Account, change func([]string) []string) error {
	who := []string{"crontab"}
	if os.Geteuid() == 0 {
		who = append(who, "-u", a.Name)
	}
	old, err := r.Run(ctx, "", append(who, "-l")...)
	if err != nil && !strings.Contains(err.Error(), "no crontab") {
		return fmt.Errorf("reading the crontab of %s: %w", a.Name, err)
	}
	var lines []string
	if old = strings.TrimRight(old, "\n"); old != "" {
		lines = strings.Split(old, "\n")
	}
	changed := change(slices.Clone(lines))
	switch {
	case slices.Equal(lines, changed):
		return nil
	case len(changed) == 0:
		_, err = r.Run(ctx, "", append(who, "-r")...)
	default:
		_, err = r.Run(ctx, strings.Join(changed, "\n")+"\n", append(who, "-")...)
	}
	if err != nil {
		return fmt.Errorf("changing the crontab of %s: %w", a.Name, err)
	}
	return nil
}

// Stop stops the service and takes it out of the host.
func (r Runner) Stop(ctx context.Context, record *Record) error {
	if record.CronLine != "" && record.prefix == "" {
		if err := r.crontab(ctx, record.Account, func(lines []string) []string {
			return slices.DeleteFunc(lines, func(line string) bool { return line == record.CronLine })
		}); err != nil {
			return err
		}
		r.Say("removed the line from the crontab of %s", record.Account.Name)
	}
	for _, command := range record.Stop {
		if _, err := r.Run(ctx, "", command...); err != nil {
			r.Say("%v", err) // it may be stopped already
			continue
		}
		r.Say("ran %s", strings.Join(command, " "))
	}
	return nil
}

// Remove takes away what Apply wrote, but for what its owner changed since. The
// record goes last.
func (r Runner) Remove(ctx context.Context, record *Record) error {
	var errs []error
	for _, f := range slices.Backward(record.Files) {
		errs = append(errs, r.removeFile(record, f))
	}
	if record.Log != "" && record.Log != "/dev/null" {
		errs = append(errs, removed(record.Log))
	}
	if err := errors.Join(errs...); err != nil {
		return r.Texts.Errorf("%w; the record %s stays: run setup --remove again", err, record.path)
	}
	if err := removed(record.path); err != nil {
		return err
	}
	for _, folder := range slices.Backward(record.Folders) {
		if empty(record.at(folder)) {
			if err := os.Remove(record.at(folder)); err != nil {
				return err
			}
		}
	}
	if record.Way == Systemd && record.prefix == "" {
		_, err := r.Run(ctx, "", "systemctl", "daemon-reload")
		return err
	}
	return nil
}

// removeFile removes a file that is still as setup wrote it.
func (r Runner) removeFile(record *Record, f Written) error {
	path := record.at(f.Path)
	same, there, err := unchanged(path, f.SHA256)
	switch {
	case err != nil || !there:
		return err
	case !same:
		r.Say("kept %s: it was changed since setup wrote it", f.Path)
		return nil
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	r.Say("removed %s", f.Path)
	return nil
}

func empty(folder string) bool {
	d, err := os.Open(folder)
	if err != nil {
		return false
	}
	defer d.Close()
	_, err = d.Readdirnames(1)
	return errors.Is(err, io.EOF)
}
