package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// shown is one setting that a comment of the example shows: the key below the comment
// with the value in it.
type shown struct{ path, text string }

// besides is what a shown setting needs from its owner, by its path.
var besides = map[string]string{
	"backup.places": "{backup: {to: [local, sftp]}, storage: {sftp: {host: backup.example, user: site, " +
		"key_file: /etc/key}}}",
}

// elsewhere are the keys of examples that stand above another key.
var elsewhere = map[string]string{"http.cms_accounts": "http.permissions", "mail.rate": "mail.rate.domains"}

// shownSettings reads the comments: a mapping in braces is an example of the next key's
// value, in a list where a dash is before it, below a name where one is.
func shownSettings(t *testing.T) (all []shown) {
	t.Helper()
	example := regexp.MustCompile(`(- |[\w.-]+: +)?\{[\w."-]+: .*\}`)
	named := regexp.MustCompile(`^ {2,}[\w.-]+: +\{`)
	key := regexp.MustCompile(`^( *)([\w]+):`)
	var path, waiting []string
	half := ""
	for line := range strings.Lines(string(Example())) {
		line = strings.TrimRight(line, "\n")
		if comment, is := strings.CutPrefix(strings.TrimLeft(line, " "), "#"); is {
			if half != "" {
				comment, half = half+" "+strings.TrimSpace(comment), ""
			}
			if strings.Count(comment, "{") > strings.Count(comment, "}") {
				half = comment
				continue
			}
			text := example.FindString(comment)
			if strings.HasPrefix(text, "- ") {
				text = "[" + text[2:] + "]"
			} else if i := strings.Index(text, "{"); i > 0 && !named.MatchString(comment) &&
				!strings.HasPrefix(comment, " sftp:") {
				text = text[i:] // the words of a sentence
			} else if i > 0 {
				text = "{" + text + "}"
			}
			if text != "" && !strings.Contains(text, `{"x"`) { // JSON of a table's column
				waiting = append(waiting, text)
			}
			continue
		}
		m := key.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		path = append(path[:min(len(m[1])/2, len(path))], m[2])
		for _, text := range waiting {
			at := strings.Join(path, ".")
			all = append(all, shown{cmp.Or(elsewhere[at], at), text})
		}
		waiting = nil
	}
	if half != "" {
		t.Errorf("a brace is never closed: %s", half)
	}
	return all
}

// Each example in a comment is valid as it stands there.
func TestEachCommentedExampleIsTaken(t *testing.T) {
	all := shownSettings(t)
	paths := map[string]bool{}
	for _, s := range all {
		paths[s.path] = true
		t.Run(s.path+" "+s.text, func(t *testing.T) {
			var value any
			if err := yaml.Unmarshal([]byte(s.text), &value); err != nil {
				t.Fatal(err)
			}
			root := map[string]any{}
			if needs := besides[s.path]; needs != "" {
				if err := yaml.Unmarshal([]byte(needs), &root); err != nil {
					t.Fatal(err)
				}
			}
			names := strings.Split(s.path, ".")
			at := root
			for _, name := range names[:len(names)-1] {
				if _, there := at[name]; !there {
					at[name] = map[string]any{}
				}
				at = at[name].(map[string]any)
			}
			at[names[len(names)-1]] = value
			text, err := yaml.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Load(Sources{File: write(t, "shown.yaml", string(text))}); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		})
	}
	if len(all) < 25 {
		t.Errorf("only %d examples were found, of %v: the test reads past them", len(all),
			slices.Sorted(maps.Keys(paths)))
	}
}
