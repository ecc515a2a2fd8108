package repository

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
)

// documentedBlocks are the fenced blocks of docs/repository-format.md in a language, in order.
func documentedBlocks(t *testing.T, language string) (found []string) {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/repository-format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		found = append(found, m[1])
	}
	return found
}

// fields are the words that the page explains, as what stands in their place.
var fields = strings.NewReplacer("SHA256-RUN", "[0-9a-f]{64}-[a-z2-7]{13}", "SHA256", "(?:[0-9a-f]{64}|=)",
	"RUN", "[a-z2-7]{13}", "TIME", `\d{4}-\d\d-\d\dT[\d:.]+Z`, "NUMBER", `\d+`, "BYTES", `\d+`, "OFFSET", `\d+`,
	"STORED", `\d+`, "LENGTH", `\d+`, "CODING", "(?:raw|zst)", "OBJECT", `[0-9a-f]{64}-[a-z2-7]{13}(?:\.age)?`,
	"MODE", "[0-7]{4}", "MODIFIED", `\d{4}-\d\d-\d\dT[\d:.]+Z`, "IDENTITY", `(?:-|\+[^\t]+)`, "NAME", `[^\t]+`,
	"TEXT", `[^\t]*`, ".", `\.`)

// fits says what of a text no line of the block describes, and which lines of the block nothing has.
func fits(block, text string) (faults []string) {
	lines := strings.Split(strings.TrimSpace(block), "\n")
	used := make([]bool, len(lines))
next:
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		for i, form := range lines {
			if regexp.MustCompile("^" + fields.Replace(form) + "$").MatchString(line) {
				used[i] = true
				continue next
			}
		}
		faults = append(faults, "not described: "+line)
	}
	for i, form := range lines {
		if !used[i] {
			faults = append(faults, "nothing is like: "+form)
		}
	}
	return faults
}

// What docs/repository-format.md shows of the files is what is in them, and its commands restore: those
// with restore.sh, and those without it.
func TestTheFormatIsAsDocumented(t *testing.T) {
	need(t, "zstd", "age")
	texts, commands := documentedBlocks(t, "text"), documentedBlocks(t, "sh")
	if len(texts) != 4 || len(commands) != 3 {
		t.Fatalf("the page has %d texts and %d commands; this test knows 4 and 3", len(texts), len(commands))
	}
	s := newSite(t, 12)
	s.write(t, "uploads/logo.png", s.noise(3000))
	r := create(t, options(local(t, t.TempDir())))
	request := s.request(t)
	request.Note = "a note"
	record := backup(t, r, request).Record
	place := r.Place()
	bash := func(script string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-euc", script)
		c.Dir = place
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}
	check := func(block, text string) {
		t.Helper()
		for _, fault := range fits(block, text) {
			t.Error(fault)
		}
	}
	check(texts[0], bash("cat format.txt"))
	written := bash("zstd -dc backups/*")
	check(texts[2], written)
	plain, encrypted, _ := strings.Cut(strings.TrimSpace(texts[1]), "  ")
	check(plain, bash("cd objects && find . -type f | sed 's|.*/||'"))

	var manifest strings.Builder
	pieces := regexp.MustCompile(`(?m)^manifest\t(\S+)\t(\d+)\t(\d+)\t(\S+)\t`)
	for _, m := range pieces.FindAllStringSubmatch(written, -1) {
		for command := range strings.Lines(commands[1]) { // the lines are one for each coding
			if strings.HasSuffix(strings.TrimSpace(command), "# "+m[4]) {
				manifest.WriteString(bash(strings.NewReplacer("objects/X/OBJECT", "objects/*/"+m[1], "OFFSET", m[2],
					"STORED", m[3]).Replace(command)))
			}
		}
	}
	check(texts[3], manifest.String())

	into := t.TempDir()
	script := strings.NewReplacer("/tmp/site", into+"/$((n=n+1))", "20261122", record.ID[:8],
		"AGE_IDENTITY=key.txt sh restore.sh", "true").Replace("n=0\n" + commands[0])
	bash(script)
	same(t, "everything", shot(t, s.dir), shot(t, filepath.Join(into, "1/media")))
	if got := shot(t, filepath.Join(into, "2/media")); len(got) != 13 {
		t.Errorf("a folder and a file are %d files, not 13: %v", len(got), got)
	}
	restoresEncrypted(t, s, commands[0], strings.TrimSpace(encrypted))
}

// restoresEncrypted runs the line of the commands that has a key.
func restoresEncrypted(t *testing.T, s *site, commands, names string) {
	t.Helper()
	key := identity(t)
	o := options(local(t, t.TempDir()))
	o.Recipients, o.Identities = []age.Recipient{key.Recipient()}, []age.Identity{key}
	r := create(t, o)
	backup(t, r, s.request(t))
	if err := os.WriteFile(filepath.Join(r.Place(), "key.txt"), []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^AGE_IDENTITY.*$`).FindString(commands)
	into := filepath.Join(t.TempDir(), "into")
	c := exec.CommandContext(t.Context(), "sh", "-euc", fmt.Sprintf("%s\nfind objects -type f | sed 's|.*/||' >names",
		strings.ReplaceAll(line, "/tmp/site", into)))
	c.Dir = r.Place()
	if out, err := c.CombinedOutput(); err != nil || line == "" {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	same(t, "the encrypted backup", shot(t, s.dir), shot(t, filepath.Join(into, "media")))
	list, err := os.ReadFile(filepath.Join(r.Place(), "names"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range fits(names, string(list)) {
		t.Error(fault)
	}
}
