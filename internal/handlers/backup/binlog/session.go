package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// context of a statement: what its text was read and carried out with.
type settings struct {
	flags     uint32
	hasFlags  bool
	mode      uint64
	hasMode   bool
	increment [2]uint16
	charset   [3]uint16 // client, connection, server
	zone      string
	locale    int
	database  int // collation of the database; −1 unknown
	defaults  int // explicit_defaults_for_timestamp; −1 unknown
	micro     uint32
}

// The numbers of what a query event says of its context.
const (
	statusFlags = iota
	statusMode
	statusCatalog
	statusIncrement
	statusCharset
	statusZone
	statusCatalogName
	statusLocale
	statusDatabase
	statusTableMap
	statusWritten
	statusInvoker
	statusDatabases
	statusMicroseconds
	_
	_
	statusDefaults   = 16
	statusWithXID    = 17
	statusCollation  = 18
	statusNeedsKey   = 19
	statusEncryption = 20
	statusHRNow      = 128
	statusXID        = 129
)

var errStatus = errors.New("the context of a statement cannot be read")

// readSettings reads the context that a query event has. What follows one that is
// unknown is left out, as servers do.
func readSettings(b []byte) (s settings, err error) {
	s.database, s.defaults, s.locale = -1, -1, -1
	u := binary.LittleEndian
	take := func(n int) []byte {
		if err != nil || len(b) < n {
			err = errStatus
			return make([]byte, max(n, 8))
		}
		part := b[:n]
		b = b[n:]
		return part
	}
	text := func() string { return string(take(int(take(1)[0]))) }
	for len(b) > 0 && err == nil {
		switch take(1)[0] {
		case statusFlags:
			s.flags, s.hasFlags = u.Uint32(take(4)), true
		case statusMode:
			s.mode, s.hasMode = u.Uint64(take(8)), true
		case statusCatalog:
			text()
			take(1)
		case statusIncrement:
			v := take(4)
			s.increment = [2]uint16{u.Uint16(v), u.Uint16(v[2:])}
		case statusCharset:
			v := take(6)
			s.charset = [3]uint16{u.Uint16(v), u.Uint16(v[2:]), u.Uint16(v[4:])}
		case statusZone:
			s.zone = text()
		case statusCatalogName:
			text()
		case statusLocale:
			s.locale = int(u.Uint16(take(2)))
		case statusDatabase:
			s.database = int(u.Uint16(take(2)))
		case statusTableMap, statusWithXID, statusXID:
			take(8)
		case statusWritten:
			take(4)
		case statusInvoker:
			text()
			text()
		case statusDatabases:
			b = skipNames(b)
		case statusMicroseconds, statusHRNow:
			v := take(3)
			s.micro = uint32(v[0]) | uint32(v[1])<<8 | uint32(v[2])<<16
		case statusDefaults:
			s.defaults = int(take(1)[0])
		case statusCollation:
			take(2)
		case statusNeedsKey, statusEncryption:
			take(1)
		default:
			return s, err
		}
	}
	return s, err
}

// mostNames is what stands for more names than are written.
const mostNames = 254

func skipNames(b []byte) []byte {
	if len(b) == 0 || b[0] == mostNames {
		return b[min(len(b), 1):]
	}
	n := int(b[0])
	b = b[1:]
	for ; n > 0; n-- {
		_, b, _ = bytes.Cut(b, []byte{0})
	}
	return b
}

// The bits of a query's flags.
const (
	flagAutoIsNull   = 1 << 14
	flagNoForeign    = 1 << 26
	flagRelaxUniques = 1 << 27
)

// statement is the SET that makes a session as the one was.
func (s settings) statement() string {
	var b []string
	set := func(format string, args ...any) { b = append(b, fmt.Sprintf("@@session."+format, args...)) }
	if s.hasFlags {
		set("foreign_key_checks = %d", bit(s.flags&flagNoForeign == 0))
		set("unique_checks = %d", bit(s.flags&flagRelaxUniques == 0))
		set("sql_auto_is_null = %d", bit(s.flags&flagAutoIsNull != 0))
	}
	if s.hasMode {
		set("sql_mode = %d", s.mode)
	}
	set("auto_increment_increment = %d", max(s.increment[0], 1))
	set("auto_increment_offset = %d", max(s.increment[1], 1))
	if s.charset[0] > 0 {
		set("character_set_client = %d", s.charset[0])
		set("collation_connection = %d", s.charset[1])
		set("collation_server = %d", s.charset[2])
	}
	if s.zone != "" {
		set("time_zone = '%s'", strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(s.zone))
	}
	set("lc_time_names = %d", max(s.locale, 0))
	if s.defaults >= 0 {
		set("explicit_defaults_for_timestamp = %d", s.defaults)
	}
	return "SET " + strings.Join(b, ", ")
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}
