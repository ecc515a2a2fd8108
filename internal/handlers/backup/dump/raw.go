package dump

import (
	"bytes"
	"regexp"
)

// The character sets that a worker's session says its texts have. A dump has utf8mb4.
const (
	dumpNames = "utf8mb4"
	// rawNames has the server store the bytes of a text as they are, once it has seen
	// that the column's character set allows them. It reads statements so in three
	// quarters of the time.
	rawNames = "binary"
)

var (
	// columnLine finds where a column's line of a CREATE TABLE begins, and its type.
	columnLine = regexp.MustCompile("(?m)^  `(?:[^`\n]|``)*(?:` ([a-z]+))?")
	// rawTypes are those whose values mean the same as text and as bytes. Others do not:
	// MySQL refuses bytes as JSON, MariaDB takes them for the 16 of a UUID or INET6.
	rawTypes = regexp.MustCompile(`^(?:(?:tiny|small|medium|big)?int|decimal|float|double|bit|year|date|time|datetime|` +
		`timestamp|char|varchar|binary|varbinary|(?:tiny|medium|long)?(?:text|blob)|enum|set)$`)
	// charsetName finds each character set that a CREATE TABLE names.
	charsetName = regexp.MustCompile(`(?:CHARACTER SET |CHARSET=)(\w+)`)
	// rawCharsets are those whose columns store a text as a dump has it.
	rawCharsets = regexp.MustCompile(`^(?:utf8|utf8mb3|utf8mb4|ascii|binary)$`)
	// tableName finds the quoted name.
	tableName = regexp.MustCompile("^CREATE TABLE (`(?:[^`]|``)+`) ")
)

// rawInserts is how the INSERTs of a table begin whose texts may be stored as the
// dump has them; nil if a column's type or character set does not allow it, or
// the statement is not as a server writes it.
func rawInserts(create []byte) []byte {
	name := tableName.FindSubmatch(create)
	if name == nil || !bytes.Contains(create, []byte(" CHARSET=")) {
		return nil
	}
	for _, column := range columnLine.FindAllSubmatch(create, -1) {
		if !rawTypes.Match(column[1]) {
			return nil
		}
	}
	for _, charset := range charsetName.FindAllSubmatch(create, -1) {
		if !rawCharsets.Match(charset[1]) {
			return nil
		}
	}
	return append(append([]byte("INSERT INTO "), name[1]...), ' ')
}
