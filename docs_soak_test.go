package cmsjobs_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// README says of the soak what its page says, in figures, and nothing else: a
// new run changes both.
func TestReadmeSaysWhatTheSoakFound(t *testing.T) {
	_, text, found := strings.Cut(read(t, "docs/reliability.md"), "<!-- soak: begin")
	text, _, closed := strings.Cut(text, "<!-- soak: end")
	if !found || !closed {
		t.Fatal("docs/reliability.md has no section of the soak")
	}
	want := soakSentence(t, text)
	if !strings.Contains(strings.Join(strings.Fields(read(t, "README.md")), " "), want) {
		t.Errorf("README.md does not say what the soak on docs/reliability.md found:\n%s", want)
	}
}

// soakSentence puts the section's figures into README's words.
func soakSentence(t *testing.T, section string) string {
	t.Helper()
	cell := func(row string) string {
		m := regexp.MustCompile(`(?m)^\| ` + row + ` \| (.*) \|$`).FindStringSubmatch(section)
		if m == nil {
			t.Fatalf("the section of the soak has no row %q", row)
		}
		return m[1]
	}
	sum := func(text string, words ...string) (n int) {
		for _, word := range words {
			m := regexp.MustCompile(word + ` (\d+)`).FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("the soak's faults have no %q: %s", word, text)
			}
			k, _ := strconv.Atoi(m[1]) // digits only
			n += k
		}
		return n
	}
	m := regexp.MustCompile(`, (\S+) long\.`).FindStringSubmatch(section)
	if m == nil {
		t.Fatal("the section of the soak does not say how long it was")
	}
	length, err := time.ParseDuration(m[1])
	if err != nil {
		t.Fatal(err)
	}
	faults := cell("faults")
	acknowledged, _, _ := strings.Cut(cell("jobs"), " ")
	return fmt.Sprintf("In %d minutes of all job types mixed, %s of %s acknowledged jobs were lost. %s ran again "+
		"behind a fault, %s without. Meanwhile the server was killed %d times and workers %d times, networks were "+
		"cut, slowed or silenced %d times, and disks filled %d times",
		int(length.Minutes()), cell("lost"), thousands(acknowledged), cell("again after a fault"),
		cell("twice without a fault"), sum(faults, "server killed"), sum(faults, "worker killed"),
		sum(faults, "connections reset", "network a black hole", "network cut", "network slow",
			"packets swallowed past the lease"),
		sum(faults, "database's disk full", "site's disk full"))
}

// thousands puts commas into a number.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
