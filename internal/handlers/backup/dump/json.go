package dump

import (
	"bytes"
	"database/sql/driver"
	"strconv"
)

// comparableJSON writes the fractions of a JSON value as the numbers that they are
// once they were restored: MySQL keeps DECIMAL 1.10 that SQL put there, but reads
// 1.1, a double, from the text of any dump. lossy says that it holds such a number.
func comparableJSON(value []byte) (same []byte, lossy bool) {
	if !bytes.ContainsAny(value, ".eE") {
		return value, false
	}
	same = make([]byte, 0, len(value))
	for i := 0; i < len(value); {
		switch c := value[i]; {
		case c == '"':
			end := stringEnd(value, i)
			same = append(same, value[i:end]...)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(value) && bytes.IndexByte([]byte("0123456789.eE+-"), value[end]) >= 0 {
				end++
			}
			number, more := comparableNumber(value[i:end])
			same, lossy = append(same, number...), lossy || more
			i = end
		default:
			same = append(same, c)
			i++
		}
	}
	return same, lossy
}

// stringEnd is where the JSON string that begins at from has ended.
func stringEnd(value []byte, from int) int {
	for i := from + 1; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(value)
}

func comparableNumber(number []byte) (same []byte, lossy bool) {
	if !bytes.ContainsAny(number, ".eE") {
		return number, false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return number, false
	}
	same = strconv.AppendFloat(nil, f, 'e', -1, 64)
	plain := strconv.AppendFloat(nil, f, 'f', -1, 64)
	whole := append(bytes.Clone(plain), ".0"...)
	lossy = !bytes.ContainsAny(number, "eE") && !bytes.Equal(number, plain) && !bytes.Equal(number, whole)
	return same, lossy
}

// comparableRow is the row as its checksum takes it.
func (d *dumper) comparableRow(t tableInfo, values []driver.Value, row []byte, entry *Table) []byte {
	changed := false
	for i, c := range t.columns {
		text, is := values[i].([]byte)
		if !c.json || !is {
			continue
		}
		same, lossy := comparableJSON(text)
		if lossy && !entry.lossy {
			entry.lossy = true
			d.warn("table %s: the JSON column %s holds decimal numbers that SQL put there (such as 1.10), which any "+
				"restore from text makes 1.1", t.name, c.name)
		}
		if !bytes.Equal(same, text) {
			values[i], changed = same, true
		}
	}
	if !changed {
		return row
	}
	return appendRow(nil, t.columns, values)
}
