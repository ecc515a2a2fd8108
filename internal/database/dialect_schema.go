package database

import "strings"

// Columns asks for the columns of the table that is its argument: name, type,
// and type with what belongs to it.
func (d Dialect) Columns() string {
	return d.Choose(Variants{
		MySQL: "SELECT column_name, data_type, column_type FROM information_schema.columns WHERE table_schema = " +
			"DATABASE() AND table_name = ?",
		PostgreSQL: "SELECT column_name, data_type, data_type FROM information_schema.columns" +
			" WHERE table_schema = ANY(current_schemas(false)) AND table_name = ?",
		SQLite: "SELECT name, lower(type), lower(type) FROM pragma_table_info(?)",
	})
}

// Indexes asks for the indexes of the table that is its argument: a row with name
// and column for each column, in order. Partial indexes are left out.
func (d Dialect) Indexes() string {
	return d.Choose(Variants{
		MySQL: "SELECT index_name, column_name FROM information_schema.statistics" +
			" WHERE table_schema = DATABASE() AND table_name = ? ORDER BY index_name, seq_in_index",
		PostgreSQL: `SELECT i.relname, a.attname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
			CROSS JOIN LATERAL unnest(CAST(x.indkey AS int2[])) WITH ORDINALITY k(attnum, n)
			JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
			WHERE x.indrelid = to_regclass(?) AND x.indpred IS NULL ORDER BY i.relname, k.n`,
		SQLite: "SELECT l.name, i.name FROM pragma_index_list(?) l JOIN pragma_index_info(l.name) i WHERE l.partial " +
			"= 0 ORDER BY l.name, i.seqno",
	})
}

// Version asks for the server's own version text, and for how many bytes a
// statement may have; 0 is no limit.
func (d Dialect) Version() string {
	return d.Choose(Variants{
		MySQL:      "SELECT CONCAT(VERSION(), ' ', @@version_comment), @@max_allowed_packet",
		PostgreSQL: "SELECT version(), 0",
		SQLite:     "SELECT 'SQLite ' || sqlite_version(), 0",
	})
}

// DropIndex removes an index of a table; both names are quoted.
func (d Dialect) DropIndex(index, table string) string {
	return d.Choose(Variants{MySQL: "DROP INDEX " + index + " ON " + table, PostgreSQL: "DROP INDEX " + index,
		SQLite: "DROP INDEX " + index})
}

// Compound is how a server takes several statements in one round trip.
type Compound int

// The ways of the servers.
const (
	NoCompound  Compound = iota // one by one
	WritableCTE                 // WITH a AS (DELETE … RETURNING id) INSERT … SELECT … FROM a
	Block                       // BEGIN NOT ATOMIC … END
	OnePacket                   // Packets, where they may be sent
)

// CompoundOf is the way of the server with this version text, which Version asks
// for. TiDB takes several statements only where it is configured to.
func (d Dialect) CompoundOf(version string) Compound {
	switch {
	case d.Name == PostgreSQL:
		return WritableCTE
	case d.Name == SQLite, strings.Contains(version, "TiDB"):
		return NoCompound
	case strings.Contains(version, "MariaDB"):
		return Block
	}
	return OnePacket
}
