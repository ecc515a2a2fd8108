package dump

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
)

func appendRow(b []byte, columns []column, values []driver.Value) []byte {
	b = append(b, '(')
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, c.form, values[i])
	}
	return append(b, ')')
}

// longBinary is where binary values stop being written as hexadecimal, which
// is safe in every tool but twice as long: a row must fit into max_allowed_packet.
const longBinary = 512 << 10

func appendValue(b []byte, f form, v driver.Value) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "NULL"...)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case []byte:
		switch f {
		case number:
			return append(b, v...)
		case binary:
			if len(v) > longBinary {
				return appendQuoted(append(b, "_binary "...), v)
			}
			return appendHex(b, v)
		}
		return appendQuoted(b, v)
	}
	return appendQuoted(b, []byte(text(v)))
}

// appendFloat always writes an exponent: without one the server would read a
// decimal, and a decimal knows no −0.
func appendFloat(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'e', -1, 64) }

func insertHead(t tableInfo) []byte {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = quoteName(c.name)
	}
	return fmt.Appendf(nil, "INSERT INTO %s (%s) VALUES\n", quoteName(t.name), strings.Join(names, ","))
}

// commentName is a table's name as a comment may hold it, on one line.
func commentName(name string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(name) }
