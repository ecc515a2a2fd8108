package cmsjobs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// make golden runs every test that writes a golden file.
func TestMakeGoldenRunsEveryGoldenTest(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^GOLDEN := (.*)$`).FindStringSubmatch(string(makefile))
	if list == nil {
		t.Fatal("the Makefile has no list GOLDEN")
	}
	golden := regexp.MustCompile(strings.ReplaceAll(list[1], "$$", "$"))
	function := regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}`)
	writes := regexp.MustCompile(`testgolden\.Check\(|\bgolden\(t,`)
	seen := 0
	for _, f := range wordFiles(t) {
		if !strings.HasSuffix(f, "_test.go") || strings.HasPrefix(f, "internal/testgolden/") || f == "golden_test.go" {
			continue
		}
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range function.FindAllStringSubmatch(string(source), -1) {
			if !writes.MatchString(test[0]) {
				continue
			}
			if seen++; !golden.MatchString(test[1]) {
				t.Errorf("%s: %s writes a golden file; add it to GOLDEN in the Makefile", f, test[1])
			}
		}
	}
	if seen < 12 {
		t.Errorf("only %d tests with golden files were found", seen)
	}
}
