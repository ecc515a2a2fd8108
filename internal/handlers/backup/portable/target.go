package portable

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Target is a server that is to take a dump.
type Target struct {
	Server     string // VERSION()
	collations map[string]bool
	engines    map[string]bool
	// trusted says that the account may make triggers and functions there.
	trusted bool
	// definers says that the account may make them for other accounts.
	definers bool
}

// LookAt asks the server that a DSN names.
func LookAt(ctx context.Context, dsn string) (Target, error) {
	pool, _, err := dump.Connect(dsn)
	if err != nil {
		return Target{}, err
	}
	defer pool.Close()
	return Look(ctx, pool)
}

// Look asks a server what it can take.
func Look(ctx context.Context, db *sql.DB) (Target, error) {
	t := Target{collations: map[string]bool{}, engines: map[string]bool{}}
	var log, trust bool
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@log_bin, @@log_bin_trust_function_creators").Scan(&t.Server,
		&log, &trust); err != nil {
		return t, fmt.Errorf("asking the server that is to take the dump: %w", err)
	}
	for query, into := range map[string]map[string]bool{
		"SELECT LOWER(COLLATION_NAME) FROM information_schema.COLLATIONS " +
			"WHERE COLLATION_NAME IS NOT NULL": t.collations,
		"SELECT LOWER(ENGINE) FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT')": t.engines,
	} {
		names, err := column(ctx, db, query)
		if err != nil {
			return t, fmt.Errorf("asking the server that is to take the dump: %w", err)
		}
		for _, name := range names {
			into[name] = true
		}
	}
	// MariaDB lists the collations that fit several character sets without the set.
	for name := range t.collations {
		if strings.HasPrefix(name, "uca1400_") {
			t.collations["utf8mb4_"+name], t.collations["utf8mb3_"+name] = true, true
		}
	}
	grants, err := column(ctx, db, "SHOW GRANTS")
	if err != nil {
		return t, fmt.Errorf("asking what the account may do: %w", err)
	}
	t.trusted = !log || trust || slices.ContainsFunc(grants, gives("SUPER"))
	t.definers = slices.ContainsFunc(grants, gives("SUPER", "SET USER", "SET_USER_ID", "SET_ANY_DEFINER"))
	return t, nil
}

func column(ctx context.Context, db *sql.DB, query string) ([]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

var (
	everywhere = regexp.MustCompile(`^GRANT (.+?) ON \*\.\* TO `)
	roleGrant  = regexp.MustCompile("^GRANT [`'\"]")
)

// gives says whether a line of SHOW GRANTS gives one of some rights everywhere. A
// role's rights are not listed: with one, it may.
func gives(rights ...string) func(grant string) bool {
	rights = append(rights, "ALL PRIVILEGES")
	return func(grant string) bool {
		if roleGrant.MatchString(grant) {
			return true
		}
		m := everywhere.FindStringSubmatch(grant)
		return m != nil && slices.ContainsFunc(strings.Split(m[1], ", "), func(right string) bool {
			return slices.Contains(rights, right)
		})
	}
}

// Trusted says whether the account may make triggers and functions there.
func (t Target) Trusted() bool { return t.trusted }

// SetsDefiners says whether the account may make views and programs of other accounts.
func (t Target) SetsDefiners() bool { return t.definers }

// TrustRemedy is what to do where it may not.
const TrustRemedy = "the server writes a binary log and lets only accounts with SUPER make them: let its " +
	"administrator SET GLOBAL log_bin_trust_function_creators = 1, or use an account with SUPER"

func (t Target) mariaDB() bool { return dump.IsMariaDB(t.Server) }

var numbers = regexp.MustCompile(`^(\d+)\.(\d+)`)

// atLeast compares the version's first two numbers.
func (t Target) atLeast(major, minor int) bool {
	m := numbers.FindStringSubmatch(t.Server)
	if m == nil {
		return false
	}
	x, _ := strconv.Atoi(m[1])
	y, _ := strconv.Atoi(m[2])
	return x > major || x == major && y >= minor
}

// Foreign says whether a dump of one server comes to another of another kind or
// version, so that only a rehearsal shows whether it is taken.
func (n *Needs) Foreign(t Target) bool {
	a, b := numbers.FindString(n.Server), numbers.FindString(t.Server)
	return a != b || dump.IsMariaDB(n.Server) != t.mariaDB()
}

// onlyThere are types of columns that the other kind does not know.
var mariaTypes, mysqlTypes = []string{"uuid", "inet4", "inet6", "xmltype"}, []string{"geomcollection"}

// Against says what of a dump will be otherwise on a server, and for what it cannot
// be restored there at all.
func (n *Needs) Against(t Target, chosen map[string]string) (warnings, refused []string) {
	if n == nil {
		return nil, nil
	}
	if len(n.Trusted) > 0 && !t.trusted {
		refused = append(refused, fmt.Sprintf("the account may not create %s: %s", listed(n.Trusted), TrustRemedy))
	}
	if len(n.Defined) > 0 && !t.definers {
		warnings = append(warnings, fmt.Sprintf("the restoring account becomes the definer of %s: it may not make "+
			"them for another", listed(n.Defined)))
	}
	if !n.Foreign(t) {
		return warnings, refused
	}
	warnings = append(warnings, fmt.Sprintf("the backup was made on %s and would be restored on %s", n.Server,
		t.Server))
	for _, collation := range n.Collations {
		to, known := t.collation(collation, chosen)
		switch {
		case !known:
			refused = append(refused, fmt.Sprintf("the collation %s is not known there, and none like it", collation))
		case to != collation:
			warnings = append(warnings, fmt.Sprintf("the collation %s becomes %s: texts may sort otherwise, and "+
				"unique keys may find two texts equal", collation, to))
		}
	}
	for _, engine := range n.Engines {
		if !t.engines[strings.ToLower(engine)] {
			warnings = append(warnings, fmt.Sprintf("the engine %s is not there: InnoDB takes its place", engine))
		}
	}
	if len(n.Hidden) > 0 && t.mariaDB() && !dump.IsMariaDB(n.Server) {
		warnings = append(warnings, fmt.Sprintf("invisible columns of %s become visible", listed(n.Hidden)))
	}
	return warnings, append(refused, n.unknown(t)...)
}

// unknown names types and objects that only the other kind has.
func (n *Needs) unknown(t Target) (refused []string) {
	fromMariaDB := dump.IsMariaDB(n.Server)
	if fromMariaDB == t.mariaDB() {
		return nil
	}
	types := mysqlTypes
	if fromMariaDB {
		types = mariaTypes
	}
	for _, name := range types {
		if slices.Contains(n.Types, name) {
			refused = append(refused, fmt.Sprintf("columns of the type %s are not known there", name))
		}
	}
	if len(n.Special) > 0 {
		refused = append(refused, fmt.Sprintf("%s: not known there", listed(n.Special)))
	}
	return refused
}

// maxListed bounds the names in a sentence.
const maxListed = 5

func listed(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}
