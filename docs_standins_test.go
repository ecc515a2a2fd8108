package cmsjobs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// What the environment of a stand-in holds.
const (
	standInProgram    = "CMSJOBS_TEST_STAND_IN" // the real cmsjobs
	standInRoot       = "CMSJOBS_TEST_ROOT"     // of the sandbox
	standInRepository = "CMSJOBS_TEST_REPOSITORY"
)

// standIn is a program that a documented block calls. cmsjobs is the real one behind it, with words such
// as JOB filled in; a program of the host does what can be done here, and refuses what the real
// one would.
func standIn(name string, args []string) int {
	if name != "cmsjobs" {
		note(name)
	}
	err := map[string]func([]string) error{"cmsjobs": cmsjobs, "sudo": sudo, "systemctl": systemctl,
		"journalctl": journalctl, "docker": docker, "make": makeTarget, "go": goRun}[name](args)
	if err == nil {
		return 0
	}
	if failed, ended := err.(*exec.ExitError); ended { //nolint:errorlint // one as it is: the program has said why
		return failed.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return 1
}

// note leaves a line for sandbox.called.
func note(name string) {
	f, err := os.OpenFile(filepath.Join(os.Getenv(standInRoot), "called"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, name)
		f.Close()
	}
}

func attached(name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}

// actual runs the program and returns what it prints.
func actual(args ...string) (string, error) {
	out, err := exec.Command(os.Getenv(standInProgram), args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cmsjobs %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// cmsjobs runs the real one. What does not end by itself is stopped when it is ready.
func cmsjobs(args []string) error {
	args, err := fill(args)
	if err != nil {
		return err
	}
	words := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	if slices.Contains(words, "setup") { // not into the host's own root
		args = append(args, "--prefix", os.Getenv(standInRoot))
		if !slices.Contains(args, "--way") {
			args = append(args, "--way", "systemd")
		}
		if slices.Contains(args, "--remove") {
			return answered(args, "y\n")
		}
		return answered(args, "owner@cms.example\ny\n")
	}
	if stays := slices.Contains(words, "run") && !slices.Contains(words, "schedule") ||
		slices.Contains(words, "work") && !slices.Contains(words, "token") &&
			!slices.Contains(args, "--stop-when-empty") || slices.Contains(words, "demo"); stays &&
		!slices.Contains(args, "--help") {
		return untilReady(args)
	}
	return attached(os.Getenv(standInProgram), args...)
}

func answered(args []string, answers string) error {
	c := exec.Command(os.Getenv(standInProgram), args...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(answers), os.Stdout, os.Stderr
	return c.Run()
}

// untilReady starts the program, waits for the line that says it works, and ends it as systemd would.
func untilReady(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Getenv(standInProgram), args...)
	said, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	c.Stderr = c.Stdout // where the log is
	if err := c.Start(); err != nil {
		return err
	}
	ready := false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		fmt.Println(lines.Text())
		if !ready && (strings.Contains(lines.Text(), "worker.started") ||
			strings.Contains(lines.Text(), "The admin page:")) {
			ready = true
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
	if err := c.Wait(); err != nil {
		return err
	}
	if !ready {
		return errors.New("it ended before it was ready")
	}
	return nil
}

// fill replaces what a document names in capitals, or by an example of a number, by what is there.
func fill(args []string) ([]string, error) {
	args = slices.Clone(args)
	if i := slices.Index(args, "WORD"); i > 0 && args[i-1] == "--confirm" {
		plan, err := actual(append(slices.Clone(args[:i-1]), append(args[i+1:], "--dry-run")...)...)
		if slices.Contains(args, "--post") { // looks unless it is confirmed
			plan, err = actual(append(slices.Clone(args[:i-1]), args[i+1:]...)...)
		}
		if err != nil {
			return nil, err
		}
		m := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan)
		if m == nil {
			return nil, fmt.Errorf("the plan names no word:\n%s", plan)
		}
		args[i] = m[1]
	}
	for i, arg := range args {
		find, known := examples[arg]
		if !known {
			continue
		}
		word, err := find(strings.Join(args[:min(2, i)], " "))
		if err != nil {
			return nil, fmt.Errorf("filling in %s: %w", arg, err)
		}
		args[i] = word
	}
	return args, nil
}

func always(word string) func(string) (string, error) {
	return func(string) (string, error) { return word, nil }
}

// examples are the words of the documents that stand for something; each gets the two words before it.
var examples = map[string]func(command string) (string, error){
	"JOB": aJob, "ID": aJob, "UUID": aJob, "7": func(command string) (string, error) {
		if command != "failed retry" {
			return "7", nil
		}
		return mailOfUnknownFate()
	},
	"TYPE": always("sitemap.generate"), "ADDRESS": always("203.0.113.7"), "DEPENDENCY": always("smtp"),
	"FILE": func(command string) (string, error) {
		name := "crontab"
		if command == "php import" {
			name = "supervisor.conf"
		}
		return filepath.Join(os.Getenv(standInRoot), name), nil
	},
	"X": always("version"),
	"NAME": func(command string) (string, error) {
		return map[string]string{"breakers reset": "smtp", "work --queue": "cmsjobs"}[command] +
			map[string]string{"schedule run": "sitemap.generate"}[command], nil
	},
	"CAUSE": func(string) (string, error) {
		if _, err := mailWithoutAnswer(); err != nil {
			return "", err
		}
		return field("cause", "failed", "groups", "--json")
	},
	"17": func(string) (string, error) {
		if _, err := actual("work", "--stop-when-empty"); err != nil {
			return "", err
		}
		return field("id", "webhook", "deliveries", "--json")
	},
	"20260301T030000Z-k3j2h1": func(string) (string, error) { return field("id", "backup", "list", "--json") },
}

// field is a field of the first item of a list.
func field(name string, args ...string) (string, error) {
	out, err := actual(args...)
	if err != nil {
		return "", err
	}
	var list struct{ Items []map[string]any }
	if err := errors.Join(json.Unmarshal([]byte(out), &list.Items),
		json.Unmarshal([]byte(out), &list)); list.Items == nil {
		return "", err
	}
	if len(list.Items) == 0 {
		return "", fmt.Errorf("cmsjobs %s lists nothing", strings.Join(args, " "))
	}
	value, there := list.Items[0][name]
	if !there {
		value = list.Items[0][strings.ToUpper(name)] // as some lists spell it
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return "", fmt.Errorf("no %s in %s", name, out)
}

// aJob is a job that the command can do something with.
func aJob(command string) (string, error) {
	switch command {
	case "backup verify":
		if _, err := actual("backup", "create"); err != nil {
			return "", err
		}
		return "latest", nil
	case "mail unknown", "failed retry":
		return mailOfUnknownFate()
	case "mail show", "mail resend":
		return enqueued("mail.send", `{"to":"jo@example.com","subject":"Hello","body":"Hi"}`, true)
	}
	return enqueued("cmsjobs.probe", "{}", false)
}

// enqueued is the UUID of a new job, which has run if work says so.
func enqueued(kind, payload string, work bool, settings ...string) (string, error) {
	out, err := actual("enqueue", kind, payload)
	if err != nil {
		return "", err
	}
	uuid := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(out)
	if !work {
		return uuid, nil
	}
	_, err = actual(append(settings, "work", "--stop-when-empty")...)
	return uuid, err
}

// mailOfUnknownFate is a mail whose server went away before it answered: one for all commands of a block.
func mailOfUnknownFate() (string, error) {
	remembered := filepath.Join(os.Getenv(standInRoot), "unknown")
	if uuid, err := os.ReadFile(remembered); err == nil {
		return string(uuid), nil
	}
	uuid, err := mailWithoutAnswer()
	if err != nil {
		return "", err
	}
	return uuid, os.WriteFile(remembered, []byte(uuid), 0o600)
}

// mailWithoutAnswer is a job that failed because nobody knows whether its mail arrived.
func mailWithoutAnswer() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go takeAndLeave(c)
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it is an address
	uuid, err := enqueued("mail.send", `{"to":"jo@example.com","subject":"Hello","body":"Hi"}`, true, "--set",
		"mail.port="+port)
	if err != nil {
		return "", err
	}
	if is, err := actual("jobs", "show", uuid); err != nil || !strings.Contains(is, "failed") {
		return "", fmt.Errorf("the mail did not fail (%v)\n%s", err, is)
	}
	return uuid, nil
}

// takeAndLeave is a mail server that takes a mail and hangs up in place of the last answer.
func takeAndLeave(c net.Conn) {
	defer c.Close()
	fmt.Fprint(c, "220 here\r\n")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch verb := strings.ToUpper(lines.Text()); {
		case verb == ".":
			return
		case strings.HasPrefix(verb, "DATA"):
			fmt.Fprint(c, "354 go on\r\n")
		case regexp.MustCompile(`^(EHLO|HELO|MAIL|RCPT|RSET|NOOP)`).MatchString(verb):
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}

func sudo(args []string) error { return attached(args[0], args[1:]...) }

// unit says whether systemd would know the unit.
func unit(name string) error {
	_, err := os.Stat(filepath.Join(os.Getenv(standInRoot), "etc/systemd/system", name+".service"))
	if err != nil {
		return fmt.Errorf("there is no unit %s: %w", name, err)
	}
	return nil
}

func systemctl(args []string) error {
	line := strings.Join(args, " ")
	m := regexp.MustCompile(`^(?:edit|enable(?: --now)?|restart|status|daemon-reload) ([\w-]+)$`).FindStringSubmatch(
		line)
	if m == nil {
		return fmt.Errorf("unknown words: %s", line)
	}
	return unit(m[1])
}

// journalctl prints what a service logs that makes a backup.
func journalctl(args []string) error {
	line := strings.Join(args, " ")
	m := regexp.MustCompile(`^-(?:fu|u) (\w+)(?: --since (?:today|yesterday))?(?: -o cat)?$`).FindStringSubmatch(line)
	if m == nil || m[1] != "cmsjobs" {
		return fmt.Errorf("unknown words: %s", line)
	}
	if _, err := actual("enqueue", "backup.generate"); err != nil {
		return err
	}
	log, err := actual("work", "--stop-when-empty")
	fmt.Print(log)
	return err
}

// makeTarget looks whether the Makefile has the target; "make build" builds, as the document goes on with it.
func makeTarget(args []string) error {
	_, rest, _ := strings.Cut(os.Getenv("PATH"), ":") // without the stand-ins
	if err := os.Setenv("PATH", rest); err != nil {
		return err
	}
	if out, err := exec.Command("make", append([]string{"-n", "-C", os.Getenv(standInRepository)},
		args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if slices.Contains(args, "build") {
		if err := os.MkdirAll("bin", 0o755); err != nil {
			return err
		}
		return attached("cp", os.Getenv(standInProgram), "bin/cmsjobs")
	}
	return nil
}

// goRun runs the program that is built already in place of its source.
func goRun(args []string) error {
	if len(args) < 2 || args[0] != "run" || args[1] != "./cmd/cmsjobs" {
		return fmt.Errorf("unknown words: %s", strings.Join(args, " "))
	}
	return cmsjobs(args[2:])
}

// docker reads what it is asked as Docker's own command line does: flags with values, an image, words.
func docker(args []string) error {
	line := strings.Join(args, " ")
	if regexp.MustCompile(`^compose up(?: --build| -d)*$`).MatchString(line) {
		_, err := os.Stat(filepath.Join(os.Getenv(standInRepository), "docker-compose.yml"))
		return err
	}
	if len(args) == 0 || args[0] != "run" {
		return fmt.Errorf("unknown words: %s", line)
	}
	var settings []string
	i := 1
	for ; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		switch args[i] {
		case "-d", "--rm":
		case "-v":
			i++
			if folder, _, _ := strings.Cut(args[i], ":"); !filepath.IsAbs(folder) {
				return fmt.Errorf("%s is no folder of the host", folder)
			}
		case "-e":
			i++
			settings = append(settings, args[i])
		case "--name", "--user", "--stop-timeout", "--network":
			i++
		default:
			return fmt.Errorf("unknown flag %s", args[i])
		}
	}
	if i != len(args)-1 {
		return fmt.Errorf("not one image: %s", args[i:])
	}
	released, err := os.ReadFile(filepath.Join(os.Getenv(standInRepository), ".github/workflows/release.yml"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(released), args[i]+":") {
		return fmt.Errorf("%s is no image of a release", args[i])
	}
	c := exec.Command(os.Getenv(standInProgram), "config", "check")
	c.Env, c.Stderr = append(os.Environ(), settings...), os.Stderr
	c.Env = append(c.Env, "CMSJOBS_CMS_DIR="+filepath.Join(os.Getenv(standInRoot), "site")) // it is another one inside
	return c.Run()
}
