package setup

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Way is what keeps the service running.
type Way string

// The ways, from the best to the last.
const (
	Systemd    Way = "systemd"
	Supervisor Way = "supervisor"
	// Cron needs neither the superuser nor a process that stays: one round a minute.
	Cron Way = "cron"
	// Compose writes a service for Docker Compose; the owner starts it.
	Compose Way = "compose"
)

// Account is a user of the host with the main group.
type Account struct {
	Name, Group string
	UID, GID    int
}

// Host is what was found out about the machine.
type Host struct {
	Root    bool // the program runs as the superuser
	Account Account
	// Program is the file of this program.
	Program string
	// Systemd, Supervisor and Crontab say what there is to start a service.
	Systemd, Supervisor, Crontab bool
	// Port is one that nothing listens to.
	Port int
	// ConfigDir is $XDG_CONFIG_HOME, or what stands for it.
	ConfigDir string
}

// Ways lists what is possible here, the best first.
func (h Host) Ways() []Way {
	var ways []Way
	if h.Root && h.Systemd {
		ways = append(ways, Systemd)
	}
	if h.Root && h.Supervisor {
		ways = append(ways, Supervisor)
	}
	if h.Crontab {
		ways = append(ways, Cron)
	}
	return append(ways, Compose)
}

// Site is what was found out about the CMS.
type Site struct {
	Dir string
	// Application is what lies there, for people; "" where it is not known.
	Application string
	Owner       Account // of the folder "storage", in which the service writes
	// Public is the folder that the web server serves, Logs that of the CMS's logs;
	// "" where it has none.
	Public, Logs string
	// Accounts says why no account of the CMS can sign in; "" where they can.
	Accounts string
	// DSN is the database where the CMS's .env does not name it; "" where it does.
	DSN    string
	Engine Engine
	// Database is its name, Prefix that of the tables.
	Database, Prefix string
	// DatabaseFile is that of SQLite; RollbackJournal says that it has no write-ahead log.
	DatabaseFile    string
	RollbackJournal bool
	// Schema, DatabaseAccount and Sequences are PostgreSQL's: where the tables are, whose
	// they are, and what numbers their rows. Missing are its programs that are not here.
	Schema, DatabaseAccount string
	Sequences               []Sequence
	Missing                 []string
	JobsTable               string // full name
	// Tables lists the CMS's tables, for the GRANTs.
	Tables []string
	// ForeignSitemap names a sitemap.xml of another program; "" where there is none.
	ForeignSitemap string
	// JobsRows is how many rows the jobs table has.
	JobsRows int64
}

// Choice is what the owner decided.
type Choice struct {
	Way Way
	// Name of the service; "cmsjobs" where it is the host's only one.
	Name string
	// Mail gets notifications; "" is nobody.
	Mail string
	// Password of the page's account "admin", where the CMS's accounts cannot sign in.
	Password string
	// Texts are what the plan says, in the owner's language.
	Texts Texts
	// Prefix is a folder that stands for "/": everything is written below it and no
	// command of the host runs. "" is the host itself.
	Prefix string
}

// File is one that is written.
type File struct {
	Path string // as the host sees it
	Mode fs.FileMode
	// Owner gets the file where the program runs as the superuser.
	Owner Account
	Text  string
	What  string // for people
}

// Plan is what Apply carries out.
type Plan struct {
	Choice  Choice
	Dir     string // the CMS's
	Account Account
	// Config is the configuration's file, Record that of what was done.
	Config, Record string
	// Log is the file that cron's rounds write; "" is none.
	Log string
	// Folders are made where they are missing.
	Folders []string
	Files   []File
	// Install copies the program there; "" leaves it where it is.
	Install string
	// Program is the file that the service starts, Source that of this program.
	Program, Source string
	// CronLine is added to the account's crontab; "" is none.
	CronLine string
	// Start and Stop are commands of the host.
	Start, Stop [][]string
	// Notes are what the owner may want to do.
	Notes []string
	// Page is the address of the page, Open how to reach it, SignIn who may.
	Page, Open, SignIn string
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)

// manyJobs is from how many rows on the index of the jobs table is worth its cost.
const manyJobs = 10_000

// installed is where the superuser's program goes.
const installed = "/usr/local/bin/cmsjobs"

// MakePlan says what has to be done. It looks at nothing but its arguments.
func MakePlan(h Host, s Site, c Choice) (Plan, error) {
	if c.Name == "" {
		c.Name = "cmsjobs"
	}
	if !nameForm.MatchString(c.Name) {
		return Plan{}, c.Texts.Errorf("%q is no name of a service: use lower-case letters, digits "+
			"and dashes", c.Name)
	}
	if err := s.missingPrograms(c.Texts); err != nil {
		return Plan{}, err
	}
	p := Plan{Choice: c, Dir: s.Dir, Account: s.Owner, Program: h.Program, Source: h.Program}
	if !h.Root {
		p.Account = h.Account
		if s.Owner.Name != h.Account.Name {
			return p, c.Texts.Errorf("the site's files belong to %s and this is %s: run setup as %s, or as root",
				s.Owner.Name, h.Account.Name, s.Owner.Name)
		}
	}
	folder := path.Join(filepath.ToSlash(h.ConfigDir), "cmsjobs")
	system := h.Root || c.Way == Systemd || c.Way == Supervisor
	if system {
		folder = "/etc/cmsjobs"
	}
	p.Config, p.Record = path.Join(folder, c.Name+".yaml"), path.Join(folder, "setup-"+c.Name+".json")
	if system && c.Name == "cmsjobs" {
		p.Config = path.Join(folder, "config.yaml") // which every command reads by itself
	}
	p.Folders = []string{folder}
	if system && h.Program != installed && !strings.HasPrefix(h.Program, "/usr/bin/") {
		p.Install, p.Program = installed, installed
	}
	if err := p.way(h, s); err != nil {
		return p, err
	}
	p.signIn(h, s)
	p.note(h, s)
	p.Files = append([]File{p.configFile(h, s)}, p.Files...)
	return p, nil
}

// way adds what keeps the service running.
func (p *Plan) way(h Host, s Site) error {
	name := p.Choice.Name
	switch p.Choice.Way {
	case Systemd:
		p.Files = append(p.Files, File{Path: "/etc/systemd/system/" + name + ".service", Mode: 0o644,
			Text: unit(*p, s), What: p.Choice.Texts.Say("the systemd unit: starts with the host, " +
				"starts again after a fault")})
		p.Start = [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", "--now", name}}
		p.Stop = [][]string{{"systemctl", "disable", "--now", name}}
	case Supervisor:
		p.Files = append(p.Files, File{Path: "/etc/supervisor/conf.d/" + name + ".conf", Mode: 0o644,
			Text: program(*p, s), What: p.Choice.Texts.Say("the program of supervisord")})
		p.Start = [][]string{{"supervisorctl", "reread"}, {"supervisorctl", "update", name}}
		p.Stop = [][]string{{"supervisorctl", "stop", name}, {"supervisorctl", "remove", name}}
	case Cron:
		if p.Log = "/dev/null"; s.Logs != "" {
			p.Log = path.Join(filepath.ToSlash(s.Logs), name+".log")
		}
		p.CronLine = cronLine(*p)
	case Compose:
		p.Files = append(p.Files, File{Path: path.Join(path.Dir(p.Config), p.Choice.Name+".compose.yaml"), Mode: 0o600,
			Owner: p.Account, Text: composeFile(*p, s), What: p.Choice.Texts.Say("the service for Docker Compose")})
		p.say("docker compose -f %s up -d   starts it", p.Files[0].Path)
	default:
		return p.Choice.Texts.Errorf("the ways are systemd, supervisor, cron and compose")
	}
	if p.Choice.Prefix != "" {
		return nil
	}
	return h.has(p.Choice.Way, p.Choice.Texts)
}

// has says why a way is not possible here; nil where it is.
func (h Host) has(way Way, texts Texts) error {
	if (way == Systemd || way == Supervisor) && !h.Root {
		return texts.Errorf("%s needs the superuser: sudo cmsjobs setup, or --way cron", way)
	}
	if !slices.Contains(h.Ways(), way) {
		return texts.Errorf("%s is not here: possible are %s", way, joinWays(h.Ways()))
	}
	return nil
}

func joinWays(ways []Way) string {
	words := make([]string, len(ways))
	for i, w := range ways {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

// signIn says where the page is and who gets in.
func (p *Plan) signIn(h Host, s Site) {
	p.Page = fmt.Sprintf("http://127.0.0.1:%d/admin", h.Port)
	texts := p.Choice.Texts
	p.Open = texts.Say("from your own computer: ssh -L %d:127.0.0.1:%d %s@this-host, then open it; "+
		"or put it behind "+
		"your web server with TLS", h.Port, h.Port, p.Account.Name)
	if p.Choice.Way == Cron {
		p.Open = texts.Say("while you run  %s --config %s run  over ssh -L %d:127.0.0.1:%d", p.Program, p.Config,
			h.Port, h.Port)
	}
	p.SignIn = texts.Say("sign in with your administrator's account of the CMS")
	if s.Accounts != "" {
		p.SignIn = texts.Say("sign in as admin with the password in %s (http.admin_password); no "+
			"account of the CMS "+
			"can: %s", p.Config, s.Accounts)
	}
}

// say adds a note.
func (p *Plan) say(form string, args ...any) {
	p.Notes = append(p.Notes, p.Choice.Texts.Say(form, args...))
}

// note names what the owner may want to do besides.
func (p *Plan) note(h Host, s Site) {
	if s.ForeignSitemap != "" {
		p.say("%s was not written by cmsjobs and stays as it is: no sitemap is made. "+
			"Move it away to let cmsjobs make one.", s.ForeignSitemap)
	}
	if s.JobsRows > manyJobs {
		p.say("%d rows are in %s. The index that keeps claims fast: %s --config %s migrate index",
			s.JobsRows, s.JobsTable, p.Program, p.Config)
	}
	p.noteEngine(s)
	if p.Choice.Way == Cron && p.Install == "" {
		p.say("cron starts %s: leave the program there.", h.Program)
	}
}

// configFile is the service's configuration: only what differs from the defaults.
func (p *Plan) configFile(h Host, s Site) File {
	var b strings.Builder
	b.WriteString("# Written by cmsjobs setup; cmsjobs setup --remove takes it away.\n" +
		"# Every other key has its default: cmsjobs config example\n")
	fmt.Fprintf(&b, "cms:\n  dir: %s\nhttp:\n  listen: 127.0.0.1:%d\n", quoted(s.Dir), h.Port)
	if s.Accounts != "" && p.Choice.Password != "" {
		fmt.Fprintf(&b, "  admin_password: %s\n", quoted(p.Choice.Password))
	}
	if p.Choice.Mail != "" {
		fmt.Fprintf(&b, "mail:\n  admin: [%s]\n", quoted(p.Choice.Mail))
	}
	if s.DSN != "" {
		fmt.Fprintf(&b, "database:\n  dsn: %s\n", quoted(s.DSN))
	}
	return File{Path: p.Config, Mode: 0o600, Owner: p.Account, Text: b.String(),
		What: p.Choice.Texts.Say("the configuration")}
}

// quoted is a string of YAML in single quotes.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
