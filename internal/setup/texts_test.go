package setup

import (
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/phrase/phrasetest"
)

// forms are the texts that setup says: the first one with a space that a call of one of the
// functions below names, in this package and in the command.
func forms(t *testing.T) (found []string) {
	t.Helper()
	for _, call := range phrasetest.Calls(t, "*.go", "../cli/setup*.go") {
		if call.On == "" || call.On == "fmt" || !slices.Contains([]string{"Say", "say", "ask",
			"Errorf"}, call.Name) {
			continue
		}
		for _, text := range call.Texts {
			if text != nil && strings.Contains(*text, " ") {
				found = append(found, *text)
				break
			}
		}
	}
	return found
}

func TestEverySentenceIsThereInVietnamese(t *testing.T) {
	texts, err := TextsFor([]string{"LANG=vi_VN.UTF-8"})
	if err != nil {
		t.Fatal(err)
	}
	said := forms(t)
	if len(said) < 60 {
		t.Fatalf("only %d texts were found: the test looks in the wrong place", len(said))
	}
	phrasetest.AreTranslated(t, said, texts, func(string) bool { return false })
}

func TestTheLanguageIsThatOfTheEnvironment(t *testing.T) {
	for environ, vietnamese := range map[string]bool{"": false, "LANG=vi_VN.UTF-8": true, "LC_ALL=vi": true,
		"LANG=en_US.UTF-8": false, "LANG=vi_VN LC_ALL=C.UTF-8": false, "LANG=vi_VN LC_ALL=": true,
		"LC_MESSAGES=vi_VN.utf8 LANG=en_GB": true, "LANG=view": false} {
		texts, err := TextsFor(strings.Fields(environ))
		if err != nil || len(texts) > 0 != vietnamese {
			t.Errorf("%q: %d texts, %v", environ, len(texts), err)
		}
	}
}
