package backup

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
)

// dumpRights are what a dump needs of MySQL. What an account has no right to
// is not refused there but invisible: a dump without TRIGGER has no triggers.
var dumpRights = []struct{ name, lost string }{
	{"SELECT", "tables"}, {"SHOW VIEW", "views"}, {"TRIGGER", "triggers"}, {"EVENT", "events"},
}

// missingPrivileges names what the dump would silently lack. It is a look, no
// verification: where grants cannot be read, nothing is said.
func (h *Handler) missingPrivileges(ctx context.Context) []string {
	if database.Of(h.c.Site.DB).Name != database.MySQL || h.c.DSN == "" {
		return nil
	}
	c, err := mysql.ParseDSN(h.c.DSN)
	if err != nil {
		return nil // the dump says so
	}
	pool, _, err := dump.Connect(h.c.DSN)
	if err != nil {
		return nil
	}
	defer pool.Close()
	rows, err := pool.QueryContext(ctx, "SHOW GRANTS")
	if err != nil {
		return nil
	}
	defer rows.Close()
	var grants []string
	for rows.Next() {
		var grant string
		if rows.Scan(&grant) != nil {
			return nil
		}
		grants = append(grants, grant)
	}
	if rows.Err() != nil {
		return nil
	}
	return lacking(grants, c.DBName)
}

var grantOn = regexp.MustCompile(`^GRANT (.+?) ON (\S+) TO `)

// lacking reads SHOW GRANTS. Rights that come by a role are not listed there:
// with one, nothing is known.
func lacking(grants []string, database string) []string {
	var granted []string
	for _, g := range grants {
		m := grantOn.FindStringSubmatch(g)
		switch {
		case m == nil:
			return nil // a role
		case m[2] == "*.*" || grantCovers(m[2], database):
			granted = append(granted, strings.Split(strings.ToUpper(m[1]), ", ")...)
		}
	}
	if slices.Contains(granted, "ALL PRIVILEGES") {
		return nil
	}
	var warnings []string
	for _, right := range dumpRights {
		if !slices.Contains(granted, right.name) {
			warnings = append(warnings, fmt.Sprintf("the database's account has no right %[1]s on all of %[2]s: "+
				"%[3]s that it may not see are not in the backup (GRANT %[1]s ON `%[2]s`.* TO …)", right.name,
				database, right.lost))
		}
	}
	return warnings
}

// grantCovers says whether a grant on `pattern`.* is one on the whole database.
func grantCovers(on, database string) bool {
	pattern, whole := strings.CutSuffix(on, ".*")
	pattern = strings.Trim(pattern, "`\"") // " in the mode ANSI_QUOTES
	if !whole {
		return false
	}
	if pattern == database || strings.ReplaceAll(pattern, "\\_", "_") == database {
		return true
	}
	expression := "^" + strings.NewReplacer("%", ".*", "\\\\_", "_", "_", ".").Replace(regexp.QuoteMeta(pattern)) + "$"
	fits, err := regexp.MatchString(expression, database)
	return err == nil && fits
}

// RestoreRights names triggers and functions of the CMS's database that the account
// could not make again: a backup holds them, but it cannot restore them.
func (h *Handler) RestoreRights(ctx context.Context) []string {
	if database.Of(h.c.Site.DB).Name != database.MySQL || h.c.DSN == "" {
		return nil
	}
	target, err := portable.LookAt(ctx, h.c.DSN)
	if err != nil || target.Trusted() {
		return nil // what keeps the account from asking shows in the dump
	}
	var names []string
	if err := h.c.Site.DB.SelectContext(ctx, &names, "SELECT CONCAT('trigger ', TRIGGER_NAME) FROM "+
		"information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()"+
		" UNION ALL SELECT CONCAT('function ', ROUTINE_NAME) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = "+
		"DATABASE() AND ROUTINE_TYPE = 'FUNCTION' ORDER BY 1"); err != nil || len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the backup holds %s, which this account could not restore: %s",
		strings.Join(names[:min(len(names), 5)], ", "), portable.TrustRemedy)}
}
