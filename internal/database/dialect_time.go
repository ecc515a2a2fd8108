package database

// FromUnix makes an expression of Unix seconds a value of a column that holds
// moments: zoned is one that keeps the zone, else it is a wall clock of the
// session's.
func (d Dialect) FromUnix(seconds string, zoned bool) string {
	postgres := "CAST(to_timestamp(" + seconds + ") AS timestamp)"
	if zoned {
		postgres = "to_timestamp(" + seconds + ")"
	}
	return d.Choose(Variants{MySQL: "FROM_UNIXTIME(" + seconds + ")", PostgreSQL: postgres, SQLite: "datetime(" +
		seconds + ", 'unixepoch')"})
}

// Unix reads a column of either type as whole Unix seconds.
func (d Dialect) Unix(column string) string {
	return d.Choose(Variants{
		MySQL:      "CAST(UNIX_TIMESTAMP(" + column + ") AS SIGNED)",
		PostgreSQL: "CAST(floor(EXTRACT(EPOCH FROM CAST(" + column + " AS timestamptz))) AS BIGINT)",
		SQLite:     "CAST(strftime('%s', " + column + ") AS INTEGER)",
	})
}

// Text reads an expression as text.
func (d Dialect) Text(expression string) string {
	return "CAST(" + expression + " AS " + d.Choose(Variants{MySQL: "CHAR", PostgreSQL: "TEXT", SQLite: "TEXT"}) + ")"
}

// MomentParam is a parameter that is compared with a column of moments: the text
// that Text gave of it.
func (d Dialect) MomentParam(zoned bool) string {
	postgres := "CAST(? AS timestamp)"
	if zoned {
		postgres = "CAST(? AS timestamptz)"
	}
	return d.Choose(Variants{MySQL: "CAST(? AS DATETIME(6))", PostgreSQL: postgres, SQLite: "?"})
}

// FromServerZone turns a wall clock of the server's zone into one of the
// session's. It is for columns that ConvertsTimestamps speaks of.
func (d Dialect) FromServerZone(wall string) string {
	return "COALESCE(CONVERT_TZ(" + wall + ", @@global.time_zone, @@session.time_zone), " + wall + ")"
}

// ToServerZone is the reverse of FromServerZone.
func (d Dialect) ToServerZone(wall string) string {
	return "COALESCE(CONVERT_TZ(" + wall + ", @@session.time_zone, @@global.time_zone), " + wall + ")"
}
