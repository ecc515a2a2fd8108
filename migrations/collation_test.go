package migrations_test

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A dump of our tables loads on every server: none has the collation that happens to
// be one server's own (utf8mb4_0900_ai_ci of MySQL 8, uca1400 of MariaDB 11.5).
func TestOurTablesNameTheirCollation(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		db := jobstest.Migrated(t, engine)
		var others []string
		if err := db.Select(&others, `SELECT CONCAT(TABLE_NAME, ' ', TABLE_COLLATION) FROM information_schema.TABLES
			WHERE TABLE_SCHEMA = DATABASE() AND TABLE_COLLATION NOT IN ('utf8mb4_unicode_ci', 'utf8mb4_bin')
			UNION ALL SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME, ' ', COLLATION_NAME) FROM information_schema.COLUMNS
			WHERE TABLE_SCHEMA = DATABASE() AND COLLATION_NAME NOT IN ('utf8mb4_unicode_ci', 'utf8mb4_bin', 'ascii_bin')`); err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			t.Errorf("%s", other)
		}
	})
}
