package dump

import (
	"slices"
	"strings"
	"testing"
)

func TestDifferencesAreNamed(t *testing.T) {
	table := func(name string, facts ...string) Object {
		o := Object{Kind: "table", Name: name, Facts: map[string]string{}}
		for i := 0; i < len(facts); i += 2 {
			o.Facts[facts[i]] = facts[i+1]
		}
		return o
	}
	was := Summary{
		Server: "9.7.4", Objects: []Object{
			table("a", "columns", "id, v", "column v", "int NULL", "index i", "BTREE v"), table("b", "columns", "id")}}
	is := Summary{
		Server: "9.7.4", Objects: []Object{
			table("a", "columns", "id, v", "column v", "bigint NULL", "check c", "(v > 0)"), table("c")}}
	want := []string{`table a: column v is "bigint NULL", was "int NULL"`, "table a: index i is missing",
		"table a: check c was not there", "the table b was not restored", "the table c is there and was not dumped"}
	if got := Differences(was, is); !slices.Equal(got, want) || Compared(was, is) != "" {
		t.Errorf("%q, %q", got, Compared(was, is))
	}
	is = Summary{Server: "10.11.6-MariaDB", Objects: []Object{
		table("a", "columns", "id, w", "column v", "bigint NULL"), table("b", "columns", "id", "options", "other")}}
	if got := Differences(was, is); !slices.Equal(got, []string{"table a: the columns are id, w, were id, v"}) ||
		!strings.Contains(Compared(was, is), "names of tables and columns") {
		t.Errorf("another kind of server: %q, %q", got, Compared(was, is))
	}
	if Compared(Summary{Server: "9.7.4", Schema: "0123"}, is) == "" {
		t.Error("a summary without objects is compared")
	}
}
