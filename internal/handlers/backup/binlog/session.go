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

// lengths are those of what is not used. Those of texts are read.
var lengths = map[byte]int{statusTableMap: 8, statusWithXID: 8, statusXID: 8, statusWritten: 4, statusCollation: 2,
	statusNeedsKey: 1, statusEncryption: 1}

// readSettings reads the context that a query event has. What follows one that is
// unknown is left out, as servers do.
func readSettings(b []byte) (settings, error) {
	r := status{b: b, s: settings{database: -1, defaults: -1, locale: -1}}
	for len(r.b) > 0 && r.err == nil {
		code := r.take(1)[0]
		if n, known := lengths[code]; known {
			r.take(n)
		} else if !r.names(code) && !r.value(code) {
			break
		}
	}
	return r.s, r.err
}

// status is the context of a statement while it is read.
type status struct {
	b   []byte
	s   settings
	err error
}

func (r *status) take(n int) []byte {
	if r.err != nil || len(r.b) < n {
		r.err = errStatus
		return make([]byte, max(n, 8))
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

func (r *status) text() string { return string(r.take(int(r.take(1)[0]))) }

// names reads what is a name; false is something else.
func (r *status) names(code byte) bool {
	switch code {
	case statusCatalog:
		r.text()
		r.take(1)
	case statusCatalogName:
		r.text()
	case statusInvoker:
		r.text()
		r.text()
	case statusDatabases:
		r.b = skipNames(r.b)
	case statusZone:
		r.s.zone = r.text()
	default:
		return false
	}
	return true
}

// value reads what is a number; false is something else.
func (r *status) value(code byte) bool {
	u, s := binary.LittleEndian, &r.s
	switch code {
	case statusFlags:
		s.flags, s.hasFlags = u.Uint32(r.take(4)), true
	case statusMode:
		s.mode, s.hasMode = u.Uint64(r.take(8)), true
	case statusIncrement:
		s.increment = [2]uint16{u.Uint16(r.take(2)), u.Uint16(r.take(2))}
	case statusCharset:
		s.charset = [3]uint16{u.Uint16(r.take(2)), u.Uint16(r.take(2)), u.Uint16(r.take(2))}
	case statusLocale:
		s.locale = int(u.Uint16(r.take(2)))
	case statusDatabase:
		s.database = int(u.Uint16(r.take(2)))
	case statusMicroseconds, statusHRNow:
		v := r.take(3)
		s.micro = uint32(v[0]) | uint32(v[1])<<8 | uint32(v[2])<<16
	case statusDefaults:
		s.defaults = int(r.take(1)[0])
	default:
		return false
	}
	return true
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
