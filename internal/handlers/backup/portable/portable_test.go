package portable

import (
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

var (
	mysql84 = Target{Server: "8.4.3", collations: set("utf8mb4_0900_ai_ci", "utf8mb4_unicode_ci",
		"utf8mb4_general_ci", "utf8mb4_bin", "utf8mb3_general_ci"), engines: set("innodb", "myisam")}
	mariaDB10 = Target{Server: "10.11.6-MariaDB", collations: set("utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci",
		"utf8mb4_general_ci", "utf8mb4_bin", "utf8mb3_general_ci"), engines: set("innodb", "aria")}
)

// mariaDB106 has the collations that count spaces at the end.
var mariaDB106 = Target{
	Server: "10.6.5-MariaDB", collations: set("utf8mb4_unicode_520_ci", "utf8mb4_unicode_520_nopad_ci", "utf8mb4_bin",
		"utf8mb4_nopad_bin"), engines: set("innodb", "aria")}

func TestAStatementIsWrittenForTheOtherServer(t *testing.T) {
	for _, c := range []struct {
		to        Target
		from      string
		statement string
		want      string
	}{
		{mysql84, "10.11.6-MariaDB", "SET sql_mode = 'STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER'",
			"SET sql_mode = 'STRICT_TRANS_TABLES'"},
		{mariaDB10, "8.4.3", "SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL'", "SET sql_mode = ''"},
		{mariaDB10, "8.4.3", "SET collation_connection = utf8mb4_0900_ai_ci", "SET collation_connection = " +
			"utf8mb4_unicode_520_ci"},
		{mariaDB10, "8.4.3", "CREATE TABLE `t` (\n  `a COLLATE utf8mb4_0900_ai_ci` text COMMENT 'it''s COLLATE " +
			"utf8mb4_0900_ai_ci'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
			"CREATE TABLE `t` (\n  `a COLLATE utf8mb4_0900_ai_ci` text COMMENT 'it''s COLLATE utf8mb4_0900_ai_ci'\n) " +
				"ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_520_ci"},
		{mysql84, "10.11.6-MariaDB", "CREATE TABLE `t` (\n  `a` int\n) ENGINE=Aria DEFAULT CHARSET=utf8mb4 " +
			"COLLATE=utf8mb4_general_ci PAGE_CHECKSUM=1", "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB DEFAULT " +
			"CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci "},
		{mariaDB106, "8.4.3", "SET collation_connection = utf8mb4_0900_ai_ci", "SET collation_connection = " +
			"utf8mb4_unicode_520_nopad_ci"},
		{mariaDB106, "8.4.3", "SET collation_connection = utf8mb4_0900_bin", "SET collation_connection = " +
			"utf8mb4_nopad_bin"},
		{mysql84, "11.8.1-MariaDB", "CREATE TABLE `t` (\n  `a` text COLLATE utf8mb4_uca1400_ai_ci\n)",
			"CREATE TABLE `t` (\n  `a` text COLLATE utf8mb4_0900_ai_ci\n)"},
		{mysql84, "10.5.1-MariaDB", "CREATE TABLE `t` (\n  `a` text COLLATE utf8_general_ci\n)",
			"CREATE TABLE `t` (\n  `a` text COLLATE utf8mb3_general_ci\n)"},
	} {
		if got := c.to.Adapt(&Needs{Server: c.from}, nil)([]byte(c.statement)); string(got) != c.want {
			t.Errorf("%s became %s, want %s", c.statement, got, c.want)
		}
	}
	if mysql84.Adapt(&Needs{Server: "8.4.1"}, nil) != nil {
		t.Error("a server of the same version gets other statements")
	}
	chosen := mysql84.Adapt(nil, map[string]string{"utf8mb4_0900_ai_ci": "utf8mb4_bin"})
	if got := string(chosen([]byte("ALTER TABLE t COLLATE utf8mb4_0900_ai_ci"))); got != "ALTER TABLE t COLLATE "+
		"utf8mb4_bin" {
		t.Errorf("the chosen collation: %s", got)
	}
}

func TestWhatAServerCannotTakeIsNamed(t *testing.T) {
	n := Of(dump.Summary{Server: "10.11.6-MariaDB", Collation: "utf8mb4_unicode_nopad_ci", Objects: []dump.Object{
		{Kind: "table", Name: "a", Facts: map[string]string{"column id": "uuid NOT NULL",
			"options": "BASE TABLE engine Aria collation utf8mb4_general_ci"}},
		{Kind: "sequence", Name: "s", Facts: map[string]string{}},
		{Kind: "trigger", Name: "told", Facts: map[string]string{}}}})
	warnings, refused := n.Against(mysql84, nil)
	for _, want := range []string{"becomes utf8mb4_0900_ai_ci", "engine Aria", "definer of trigger told"} {
		if !strings.Contains(strings.Join(warnings, "\n"), want) {
			t.Errorf("no %q in %q", want, warnings)
		}
	}
	for _, want := range []string{"trigger told", "type uuid", "sequence s"} {
		if !strings.Contains(strings.Join(refused, "\n"), want) {
			t.Errorf("no %q in %q", want, refused)
		}
	}
	if _, refused := n.Against(mysql84, map[string]string{
		"utf8mb4_unicode_nopad_ci": "utf8mb4_nonsense"}); !slices.ContainsFunc(refused, func(r string) bool {
		return strings.Contains(r, "utf8mb4_unicode_nopad_ci is not known")
	}) {
		t.Errorf("a chosen collation that is not there: %q", refused)
	}
}

func TestLookingAtAServer(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		jobstest.AsRoot(t)
		db := jobstest.Open(t, engine)
		target, err := Look(t.Context(), db.DB.DB)
		if err != nil || !target.Trusted() || !target.SetsDefiners() ||
			target.mariaDB() != (engine == jobstest.MariaDB) || !target.collations["utf8mb4_bin"] ||
			!target.engines["innodb"] {
			t.Errorf("%+v, %v", target, err)
		}
	})
}

func FuzzAdapt(f *testing.F) {
	f.Add("CREATE TABLE `t` (`a` text COLLATE utf8mb4_0900_ai_ci) ENGINE=Aria")
	adapt := mariaDB10.Adapt(&Needs{Server: "8.4.3"}, nil)
	f.Fuzz(func(t *testing.T, statement string) {
		once := adapt([]byte(statement))
		if again := adapt(once); string(again) != string(once) {
			t.Errorf("%q is %q, and that is %q", statement, once, again)
		}
	})
}
