package cmsjobs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

var keyLine = regexp.MustCompile(`^( *)([a-z0-9_]+):(?: (.*))?$`)

// docs/settings.md is config.example.yaml as tables; -update writes it.
func TestSettingsAreDocumented(t *testing.T) {
	page := settingsPage(read(t, "config/config.example.yaml"))
	testgolden.Check(t, "docs/settings.md", []byte(page))
}

func settingsPage(example string) string {
	var b strings.Builder
	b.WriteString(`# Every setting

Made from [config.example.yaml](../config/config.example.yaml) by a test. Set a key by a flag (` + "`--set queue.poll=1s`" + `), by its variable,
in the YAML file, or in the CMS's ` + "`.env`" + `; the first of these wins. ` + "`cmsjobs config show`" +
		` prints every value with its origin.
A variable that ends in ` + "`_FILE`" + ` names a file that holds the value.
`)
	var parents, comment []string
	for line := range strings.Lines(example) {
		line = strings.TrimRight(line, "\n")
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "#"); is {
			comment = append(comment, strings.TrimSpace(text))
			continue
		}
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			comment = nil
			continue
		}
		depth := len(m[1]) / 2
		parents = append(parents[:depth], m[2])
		if depth == 0 {
			fmt.Fprintf(&b, "\n## %s\n\n", m[2])
			if m[3] == "" {
				b.WriteString("| key | variable | default | meaning |\n|---|---|---|---|\n")
			} else {
				fmt.Fprintf(&b, "Default `%s`. %s\n", m[3], strings.Join(comment, " "))
			}
		}
		if depth > 0 && m[3] != "" {
			key := strings.Join(parents, ".")
			fmt.Fprintf(&b, "| `%s` | CMSJOBS_%s | `%s` | %s |\n", key,
				strings.ToUpper(strings.ReplaceAll(key, ".", "_")),
				m[3], strings.ReplaceAll(strings.Join(comment, " "), "|", `\|`))
		}
		comment = nil
	}
	return b.String()
}
