package cmsjobs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// knowServers are the folders that may compare names of drivers and servers, and
// why. Everybody else asks database.Of for words of SQL and named abilities.
var knowServers = map[string]string{
	"internal/database": "it is the one place that knows the servers",
	"internal/handlers/backup": "a backup names the server that it was dumped from: dumps, temporary databases and " +
		"restores are other programs for each",
	"internal/demo": "it writes the CMS's own tables, as Laravel would on each server",
	"config":        "it reads the forms of a DSN and of Laravel's .env before anything is connected",
	"migrations": "goose has a folder for each server; tests of internal/database need it, so it " +
		"cannot ask there",
}

// serverNames are the words for drivers and servers in DSNs, goose and Laravel.
var serverNames = []string{"mysql", "mariadb", "pgx", "postgres", "postgresql", "pgsql", "sqlite", "sqlite3"}

// serverSQL is SQL that only some servers understand, and that Dialect has words for.
var serverSQL = []string{"ON CONFLICT", "ON DUPLICATE KEY", "INSERT IGNORE", "INSERT OR IGNORE", "SYSDATE(",
	"CLOCK_TIMESTAMP(", "STATEMENT_TIMESTAMP("}

// namesServer says that an expression is the name of a driver or server.
func namesServer(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return err == nil && e.Kind == token.STRING && slices.Contains(serverNames, text)
	case *ast.SelectorExpr:
		pkg, isIdent := e.X.(*ast.Ident)
		return isIdent && pkg.Name == "database" && slices.Contains([]string{"MySQL", "PostgreSQL", "SQLite"},
			e.Sel.Name)
	}
	return false
}

// serverQuestion says in which way a node asks which server it is; "" when it does not.
func serverQuestion(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if s, isSelector := n.Fun.(*ast.SelectorExpr); isSelector && s.Sel.Name == "DriverName" {
			return "asks for DriverName()"
		}
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && (namesServer(n.X) || namesServer(n.Y)) {
			return "compares the name of a server"
		}
	case *ast.CaseClause:
		if slices.ContainsFunc(n.List, namesServer) {
			return "switches by the name of a server"
		}
	case *ast.KeyValueExpr:
		if namesServer(n.Key) {
			return "has a map by the name of a server"
		}
	case *ast.BasicLit:
		for _, words := range serverSQL {
			if n.Kind == token.STRING && strings.Contains(strings.ToUpper(n.Value), words) {
				return "writes " + words + " itself"
			}
		}
	}
	return ""
}

// TestOnlyOnePackageKnowsTheServers: a new server, or a new version of one, is
// one package's work.
func TestOnlyOnePackageKnowsTheServers(t *testing.T) {
	needed := map[string]bool{}
	for _, s := range sources(t) {
		other := strings.HasPrefix(s.path, "bench/") || strings.HasPrefix(s.path, "checks/") ||
			strings.HasPrefix(s.path, "client/")
		if other || strings.HasSuffix(s.path, "_test.go") { // they are no part of the service
			continue
		}
		exempt := ""
		for folder := range knowServers {
			if s.dir() == folder || strings.HasPrefix(s.dir(), folder+"/") {
				exempt = folder
			}
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			question := serverQuestion(n)
			switch {
			case question == "":
			case exempt != "":
				needed[exempt] = true
			default:
				t.Errorf("%s %s: ask database.Of for it", s.path, question)
			}
			return true
		})
	}
	for folder, reason := range knowServers {
		if !needed[folder] {
			t.Errorf("%s asks no server for its name any more: remove its exemption (%s)", folder, reason)
		}
	}
}

func TestTheServerRuleCanFail(t *testing.T) {
	for code, want := range map[string]bool{
		`db.DriverName()`:                                       true,
		`name == "mysql"`:                                       true,
		`d.Name != database.SQLite`:                             true,
		`func() { switch x { case "pgx": } }`:                   true,
		`map[string]int{"sqlite": 1}`:                           true,
		`"INSERT INTO t (a) VALUES (1) on conflict do nothing"`: true,
		`open("sqlite", file)`:                                  false,
		`d.Choose(database.Variants{MySQL: "a"})`:               false,
		`text == "mysqldump"`:                                   false,
	} {
		expression, err := parser.ParseExpr(code)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		ast.Inspect(expression, func(n ast.Node) bool {
			found = found || serverQuestion(n) != ""
			return true
		})
		if found != want {
			t.Errorf("%s asks for a server: %v", code, found)
		}
	}
}
