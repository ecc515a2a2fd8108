package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
)

// maxStatement is how much of a statement is kept; longer ones are left out,
// as half a statement does not parse.
const maxStatement = 60_000

// entry is the head of an entry of MySQL's general log. What a statement says
// further stands in the lines that follow.
var entry = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\s+\d+ ([A-Z][A-Za-z ]*)(?:\t(.*))?$`)

// startOfServer is the line that a server which starts again writes.
var startOfServer = regexp.MustCompile(`, Version: .* started with:$`)

// readLog calls with for each statement that a server was asked to run.
func readLog(file string, with func(statement string)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var now strings.Builder
	open := false
	end := func() {
		if open && now.Len() < maxStatement {
			with(now.String())
		}
		now.Reset()
	}
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		head := entry.FindStringSubmatch(line)
		switch {
		case head != nil:
			end()
			if open = head[1] == "Query" || head[1] == "Execute"; open {
				now.WriteString(head[2])
			}
		case startOfServer.MatchString(line):
			end()
			open = false
		case open && now.Len() < maxStatement:
			now.WriteString("\n" + line)
		}
		if errors.Is(err, io.EOF) {
			end()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// values are what differs from one sending of a statement to the next.
var values = []struct {
	what *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`(?m)(^|\s)-- .*$`), " "}, // a comment may hold a lone apostrophe
	{regexp.MustCompile(`_binary\s*'(?:[^'\\]|\\.|'')*'`), "'s'"},
	{regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'`), "'s'"},
	{regexp.MustCompile(`0x[0-9A-Fa-f]+`), "0x00"},
	{regexp.MustCompile(`\b\d+(\.\d+)?([eE][+-]?\d+)?\b`), "1"},
	{regexp.MustCompile(`\bt_[0-9a-f]{20}\b`), "t_db"},
	{regexp.MustCompile(`cmsjobs_verify_\w+`), "cmsjobs_verify_x"},
	{regexp.MustCompile(`\s+`), " "},
	{regexp.MustCompile(`(?i)(\bIN ?|\bVALUES ?|\), ?)\((?:1|'s'|NULL)(?:, ?(?:1|'s'|NULL))+\)`), "$1(1)"},
	{regexp.MustCompile(`(\(1\))(?:, ?\(1\))+`), "$1"},
}

// foreign are statements that do not concern the program's own SQL: what tests
// make as a CMS's tables, and what a restore sends out of its dump. Definitions
// of the service's tables (cmsjobs_*) and of the queue's stay.
var (
	foreign = regexp.MustCompile(`(?i)^(--|/\*!|(CREATE|ALTER|DROP|INSERT|REPLACE|LOCK|UNLOCK|TRUNCATE)\b)`)
	ours    = regexp.MustCompile(`(?i)cmsjobs_|\bjobs\b|\bfailed_jobs\b|\bCREATE DATABASE\b|\bDROP DATABASE\b`)
)

// kept says whether a statement belongs into the corpus. Comments with a version
// are in those of mysqldump, which may back up the database.
func kept(statement string) bool {
	if statement == "" || strings.Contains(statement, "/*!") {
		return false
	}
	return !foreign.MatchString(statement) ||
		ours.MatchString(statement) && statement[0] != '/' && statement[0] != '-'
}

// normalised is a statement with its values replaced, on one line.
func normalised(statement string) string {
	for _, v := range values {
		for before := ""; before != statement; {
			before, statement = statement, v.what.ReplaceAllString(statement, v.to)
		}
	}
	return strings.TrimSpace(statement)
}
