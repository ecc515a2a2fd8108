package dump

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

var long = strings.Repeat("x", longText)

func TestOnlyWholeTextsGoBesideAStatement(t *testing.T) {
	for statement, want := range map[string]string{
		"INSERT INTO `t` VALUES ('" + long[1:] + "')":               "INSERT INTO `t` VALUES ('" + long[1:] + "')",
		"INSERT INTO `t` VALUES ('" + long + "')":                   "INSERT INTO `t` VALUES (?)",
		"INSERT INTO `t` VALUES (1,'" + long + "','y'),(2,'?','')":  "INSERT INTO `t` VALUES (1,?,'y'),(2,'?','')",
		"INSERT INTO `t` VALUES (_binary '" + long + "')":           "INSERT INTO `t` VALUES (_binary '" + long + "')",
		"INSERT INTO `t` VALUES ('" + long + "''" + long + "')":     "INSERT INTO `t` VALUES ('" + long + "''" + long + "')",
		"INSERT INTO `t` VALUES (\"" + long + "\")":                 "INSERT INTO `t` VALUES (\"" + long + "\")",
		"INSERT INTO `t" + long + "'` (`a'`) VALUES ('" + long + "": "INSERT INTO `t" + long + "'` (`a'`) VALUES ('" + long + "",
		"": "",
	} {
		if got, _ := withoutLongTexts([]byte(statement)); got != want {
			t.Errorf("%q: %q", statement, got)
		}
	}
}

// A backslash before each byte means what it means to the server.
func TestLongTextsMeanWhatTheServerReads(t *testing.T) {
	jobstest.EachMySQL(t, testLongTextsMeanWhatTheServerReads)
}

func testLongTextsMeanWhatTheServerReads(t *testing.T, engine jobstest.Engine) {
	literal := []byte(long)
	for c := range 256 {
		literal = append(literal, '\\', byte(c))
	}
	statement := append(append([]byte("SELECT ('"), literal...), "')"...)
	db := jobstest.Open(t, engine)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "SET NAMES "+rawNames); err != nil {
		t.Fatal(err)
	}
	var want []byte
	if err := conn.QueryRowContext(t.Context(), string(statement)).Scan(&want); err != nil {
		t.Fatal(err)
	}
	short, texts := withoutLongTexts(statement)
	if short != "SELECT (?)" || len(texts) != 1 || !bytes.Equal(texts[0].([]byte), want) {
		t.Errorf("%q of %q, the server reads %q", short, texts, want)
	}
}

func FuzzLongTexts(f *testing.F) {
	f.Add([]byte("a'b\\c\"\x00\n\r\x1aü?"), "`t'`")
	f.Fuzz(func(t *testing.T, value []byte, name string) {
		value = append(value, long...)
		head := "INSERT INTO " + quoteName(name) + " VALUES (7,"
		short, texts := withoutLongTexts(append(appendQuoted([]byte(head), value), ",'?'),(8,'',NULL)"...))
		if short != head+"?,'?'),(8,'',NULL)" || len(texts) != 1 || !bytes.Equal(texts[0].([]byte), value) {
			t.Errorf("%q in %q became %q, %q", value, head, short, texts)
		}
	})
}
