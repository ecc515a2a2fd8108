package setup

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/deploy"
)

// unit is deploy/cmsjobs.service, filled in.
func unit(p Plan, s Site) string {
	text := deploy.Unit()
	set := func(key, value string) {
		text = regexp.MustCompile(`(?m)^`+key+`=.*$`).ReplaceAllLiteralString(text, key+"="+value)
	}
	set("User", p.Account.Name)
	set("Group", p.Account.Group)
	set("ExecStart", p.Program+" --config "+p.Config+" run")
	set("Environment", "CMSJOBS_CMS_DIR="+quotedUnit(s.Dir))
	// "-": a folder that is not there yet is no fault.
	var places []string
	for _, folder := range writable(s) {
		places = append(places, quotedUnit("-"+folder))
	}
	set("ReadWritePaths", strings.Join(places, " "))
	if strings.HasPrefix(s.Dir, "/home/") || strings.HasPrefix(s.Dir, "/root/") {
		set("ProtectHome", "no") // the site lies there
	}
	_, body, _ := strings.Cut(text, "[Unit]\n")
	return "# Written by cmsjobs setup; cmsjobs setup --remove takes it away.\n[Unit]\n" + body
}

// quotedUnit keeps a path with blanks one word of systemd's.
func quotedUnit(s string) string {
	s = strings.ReplaceAll(s, "%", "%%")
	if strings.ContainsAny(s, " \t\"'\\") {
		s = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return s
}

// writable are the folders in which the service writes.
func writable(s Site) []string {
	public := s.Public
	if public == "" {
		public = path.Join(filepath.ToSlash(s.Dir), "public")
	}
	folders := []string{public, path.Join(filepath.ToSlash(s.Dir), "storage"),
		path.Join(filepath.ToSlash(s.Dir), "bootstrap/cache")}
	if s.DatabaseFile != "" { // SQLite writes its journal beside the file
		folders = append(folders, path.Dir(filepath.ToSlash(s.DatabaseFile)))
	}
	return folders
}

// program is the first program of deploy/cmsjobs.supervisor.conf, filled in.
func program(p Plan, s Site) string {
	_, text, _ := strings.Cut(deploy.Supervisor(), "[program:cmsjobs]\n")
	text, _, _ = strings.Cut(text, "\n[program:")
	set := func(key, value string) {
		text = regexp.MustCompile(`(?m)^`+key+`=.*$`).ReplaceAllLiteralString(text, key+"="+value)
	}
	percent := func(s string) string { return strings.ReplaceAll(s, "%", "%%") }
	set("command", percent(words(p.Program, "--config", p.Config, "run")))
	set("user", p.Account.Name)
	set("directory", percent(s.Dir))
	set("environment", `CMSJOBS_LOG_FORMAT="json"`)
	return "; Written by cmsjobs setup; cmsjobs setup --remove takes it away.\n[program:" + p.Choice.Name + "]\n" + text
}

// words quotes arguments for a shell, and for supervisord, which reads them alike.
func words(arguments ...string) string {
	var quoted []string
	for _, a := range arguments {
		if regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(a) {
			quoted = append(quoted, a)
			continue
		}
		quoted = append(quoted, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

// cronLine runs a round each minute. Two at once are safe. "%" ends a command of
// cron's, so it is escaped. The name at the end is how Remove knows the line.
func cronLine(p Plan) string {
	command := words(p.Program, "--config", p.Config, "tick") + " >>" + words(p.Log) + " 2>&1"
	return "* * * * * " + strings.ReplaceAll(command, "%", `\%`) + " # cmsjobs setup " + p.Choice.Name
}

// composeFile is a service for Docker Compose. The container uses the host's
// network, so that the addresses in the CMS's .env mean the same there. For the same
// reason the folder of a SQLite file has its path of the host.
func composeFile(p Plan, s Site) string {
	file := ""
	if s.DatabaseFile != "" {
		folder := path.Dir(filepath.ToSlash(s.DatabaseFile))
		file = "      - " + quoted(folder+":"+folder) + "\n"
	}
	return fmt.Sprintf(`# Written by cmsjobs setup; cmsjobs setup --remove takes it away.
services:
  %s:
    image: ghcr.io/cmsjobs/cmsjobs
    restart: unless-stopped
    network_mode: host
    user: "%d:%d"
    command: ["run"]
    stop_grace_period: 45s
    environment:
      CMSJOBS_CMS_DIR: /cms
      CMSJOBS_CONFIG: /etc/cmsjobs/config.yaml
      CMSJOBS_QUEUE_GRACE: 30s
    volumes:
      - %s
      - %s
%s`, p.Choice.Name, p.Account.UID, p.Account.GID, quoted(s.Dir+":/cms"),
		quoted(p.Config+":/etc/cmsjobs/config.yaml:ro"), file)
}
