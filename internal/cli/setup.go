package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/setup"
)

// setupOptions are the flags of "cmsjobs setup".
type setupOptions struct {
	choice        setup.Choice
	way           string
	yes, remove   bool
	answers       *bufio.Reader
	record        *setup.Record
	host          setup.Host
	site          setup.Site
	tables, blank bool
}

func (a *commandLine) setupCommand() *cobra.Command {
	var o setupOptions
	c := &cobra.Command{
		Use:   "setup",
		Short: "Put the service beside a CMS on this host, or take it away again",
		Long: `Looks at the host and the CMS, shows a plan, and after your yes writes what this host needs:
a systemd unit, a program of supervisord, a line of cron (no superuser needed: shared hosting), or
a service for Docker Compose. It then makes the first backup and the first sitemap, runs doctor, and
says where the page is and who may sign in. Nothing foreign is replaced.

--remove undoes everything that setup wrote. If backups were made since, all of them stay,
with the repository of their files.

Exit codes: 0 done · 1 not done · 2 this host or site does not fit`,
		Example: "  sudo cmsjobs --cms /var/www/site setup\n  cmsjobs --cms ~/site setup --way cron --yes\n" +
			"  cmsjobs --cms /var/www/site setup --dry-run\n  sudo cmsjobs --cms /var/www/site setup --remove",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.speak(&o); err != nil {
				return err
			}
			o.answers = bufio.NewReader(a.in)
			if o.remove {
				return a.removeSetup(c.Context(), &o)
			}
			return a.setUp(c.Context(), &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.way, "way", "", "systemd, supervisor, cron or compose (default: the best that is here)")
	f.StringVar(&o.choice.Name, "name", "cmsjobs", "the service's name, where a host has several sites")
	f.StringVar(&o.choice.Mail, "mail", "", "the address that gets notifications")
	f.StringVar(&o.choice.Prefix, "prefix", "", "write below this folder, as for an image, and start nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "ask nothing")
	f.BoolVar(&a.dry, "dry-run", false, "only show the plan")
	f.BoolVar(&o.remove, "remove", false, "undo what setup wrote")
	c.MarkFlagsMutuallyExclusive("remove", "dry-run")
	c.AddCommand(a.setupUndoCommand())
	return c
}

// setUp looks, plans, asks, and carries the plan out.
func (a *commandLine) setUp(ctx context.Context, o *setupOptions) error {
	if err := a.lookAround(ctx, o); err != nil {
		return err
	}
	if err := a.askWay(o); err != nil {
		return err
	}
	if o.site.Accounts != "" {
		o.choice.Password = rand.Text()
	}
	plan, err := setup.MakePlan(o.host, o.site, o.choice)
	if err != nil {
		return app.UsageError{Err: err}
	}
	a.showPlan(plan, o)
	if a.dry {
		return nil
	}
	if err := a.agreed(o); err != nil {
		return err
	}
	runner := setup.Runner{Run: setup.Command, Say: a.say, Texts: a.texts}
	if o.record, err = runner.Apply(plan, o.tables); err != nil {
		return errors.Join(err, a.undoHint(o.record))
	}
	if err := a.firstJobs(ctx, o, plan); err != nil {
		return errors.Join(err, a.undoHint(o.record))
	}
	if err := runner.Start(ctx, plan); err != nil {
		return errors.Join(err, a.undoHint(o.record))
	}
	a.say("\nDoctor:")
	doctor := a.asAccount(ctx, o.record, a.out, "doctor") // its findings are shown, and no reason to undo
	if doctor != nil {
		a.say("Doctor found something to do: see above.")
	}
	return a.sayEnd(ctx, plan, o)
}

// speak chooses the language of what setup says.
func (a *commandLine) speak(o *setupOptions) (err error) {
	a.texts, err = setup.TextsFor(a.environ)
	o.choice.Texts = a.texts
	return err
}

func (a *commandLine) say(format string, args ...any) {
	fmt.Fprintln(a.out, a.texts.Say(format, args...))
}

// undoHint names the way back where something was changed.
func (a *commandLine) undoHint(r *setup.Record) error {
	if r == nil {
		return nil
	}
	return a.texts.Errorf("what is done so far is undone by: cmsjobs --cms %s setup --remove", r.Dir)
}

// agreed asks whether to go on.
func (a *commandLine) agreed(o *setupOptions) error {
	yes, err := a.ask(o, "y", "Do it? [Y/n] ")
	if err != nil || !strings.HasPrefix(strings.ToLower(yes), "y") {
		return errors.Join(err, a.texts.Errorf("nothing was changed"))
	}
	return nil
}

// ask reads one answer; fallback is that of --yes and of an empty line.
func (a *commandLine) ask(o *setupOptions, fallback, question string, args ...any) (string, error) {
	if o.yes {
		return fallback, nil
	}
	fmt.Fprint(a.out, a.texts.Say(question, args...))
	line, err := o.answers.ReadString('\n')
	if errors.Is(err, io.EOF) && line == "" {
		return "", app.UsageError{Err: a.texts.Errorf("there is nobody to ask; say --yes, or " +
			"--dry-run to see the plan")}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return fallback, nil
	}
	return line, nil
}

// askWay chooses what keeps the service running, and who is notified.
func (a *commandLine) askWay(o *setupOptions) error {
	ways := o.host.Ways()
	o.choice.Way = setup.Way(o.way)
	if o.choice.Way == "" {
		o.choice.Way = ways[0]
		if len(ways) > 1 {
			way, err := a.ask(o, string(ways[0]), "What keeps it running? %v [%s] ", ways, ways[0])
			if err != nil {
				return err
			}
			o.choice.Way = setup.Way(way)
		}
	}
	if o.choice.Mail != "" {
		return nil
	}
	mail, err := a.ask(o, "", "Who gets a mail when something is wrong? (an address, or nothing) ")
	o.choice.Mail = mail
	return err
}

// showPlan says what is going to happen.
func (a *commandLine) showPlan(p setup.Plan, o *setupOptions) {
	a.say("Plan for %s (%s), as %s:", p.Dir, p.Choice.Way, p.Account.Name)
	if o.site.Application != "" {
		a.say("  there is: %s", o.site.Application)
	}
	if o.blank {
		a.say("  off: sitemap, pictures, publishing: the database has no tables of a CMS's content")
	}
	if p.Install != "" {
		a.say("  copy this program to %s", p.Install)
	}
	for _, f := range p.Files {
		a.say("  write %s: %s", f.Path, f.What)
	}
	if !o.tables {
		a.say("  create the tables cmsjobs_* in the CMS's database; its own tables stay as they are")
	}
	if p.CronLine != "" {
		a.say("  add to the crontab of %s: %s", p.Account.Name, p.CronLine)
	}
	a.say("  make the first backup, its files in a repository beside it; restore it into a temporary database to " +
		"test it, if the account may make one")
	if o.site.ForeignSitemap == "" && !o.blank {
		a.say("  write the first sitemap into %s", o.site.Public)
	}
	for _, command := range p.Start {
		if p.Choice.Prefix == "" {
			a.say("  run %s", strings.Join(command, " "))
		}
	}
	for _, note := range p.Notes {
		a.say("Note: %s", note)
	}
}

// sayEnd says where the page is, and which rights a separate account needs.
func (a *commandLine) sayEnd(ctx context.Context, p setup.Plan, o *setupOptions) error {
	if err := a.lookAround(ctx, o); err != nil { // the service's tables are there now
		return err
	}
	if grants := o.site.Grants(); grants != "" {
		a.say("\nThe service uses the CMS's own database account. For one with fewer rights, run this as the "+
			"database's administrator "+
			"and set database.dsn in %s:\n%s", p.Config, grants)
	}
	a.say("\nThe page: %s", p.Page)
	a.say("  %s", p.Open)
	a.say("  %s", p.SignIn)
	a.say("Undo: cmsjobs --cms %s setup --remove", p.Dir)
	return nil
}

// firstJobs makes the first backup and the first map, in the name of the site's
// account: what it writes is to be PHP's too.
func (a *commandLine) firstJobs(ctx context.Context, o *setupOptions, p setup.Plan) error {
	for _, place := range []string{"storage/app/backup", "storage/app/cmsjobs-backups"} {
		if _, err := os.Stat(filepath.Join(p.Dir, place)); errors.Is(err, os.ErrNotExist) {
			o.record.Places = append(o.record.Places, filepath.Join(p.Dir, place))
		}
	}
	o.record.RollbackJournal = o.site.RollbackJournal
	if err := o.record.Save(); err != nil {
		return err
	}
	a.say("\nThe first backup:")
	var out bytes.Buffer
	if err := a.asAccount(ctx, o.record, &out, "backup", "create", "--json", "--name", "setup"); err != nil {
		return a.texts.Errorf("the first backup: %w", err)
	}
	var made struct {
		ID           string `json:"id"`
		Status       string `json:"status"`
		Tables       int    `json:"tables"`
		Files        int64  `json:"files"`
		Verification *struct {
			Level string `json:"level"`
			OK    bool   `json:"ok"`
		} `json:"verification"`
	}
	if err := json.Unmarshal(out.Bytes(), &made); err != nil {
		return fmt.Errorf("reading what the first backup says: %w", err)
	}
	o.record.Backup = made.ID
	verified := a.texts.Say("not verified")
	if made.Verification != nil && made.Verification.OK {
		verified = a.texts.Say("verified: %s", made.Verification.Level)
	}
	a.say("  %s: %s, %d tables, %d files, %s", made.ID, made.Status, made.Tables, made.Files, verified)
	if o.site.ForeignSitemap == "" && !o.blank {
		a.say("The first sitemap:")
		_, err := os.Stat(filepath.Join(o.site.Public, "sitemap.xml"))
		o.record.Sitemap = errors.Is(err, os.ErrNotExist) // one of ours that was there stays
		if err := o.record.Save(); err != nil {
			return err
		}
		if err := a.asAccount(ctx, o.record, io.Discard, "sitemap", "generate", "--force"); err != nil {
			return a.texts.Errorf("the first sitemap: %w", err)
		}
		a.say("  %s", filepath.Join(o.site.Public, "sitemap.xml"))
	}
	return o.record.Save()
}

// asAccount runs a command of this program with the new configuration, as the
// account that the service has.
func (a *commandLine) asAccount(ctx context.Context, r *setup.Record, out io.Writer, command ...string) error {
	c := exec.CommandContext(ctx, a.Self, append([]string{"--config", r.ConfigPath()}, command...)...)
	c.Stdout, c.Stderr = out, a.Err
	c.Env = slices.DeleteFunc(slices.Clone(a.environ), func(v string) bool {
		return strings.HasPrefix(v, "CMSJOBS_CONFIG=") || strings.HasPrefix(v, "HOME=")
	})
	setup.As(c, r.Account)
	return c.Run()
}
