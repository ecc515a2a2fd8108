package dump

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cespare/xxhash/v2"
)

// cutSize is about how long a piece is that ends by a key.
const cutSize = 256 << 10

// endsPiece says whether a piece ends after a row: by a hash of its key, and of the whole
// row where there is no key. As nothing else is asked, a row that is added, changed or
// deleted changes the piece that it is in, and never those before and after.
func (t tableInfo) endsPiece(values []driver.Value, row []byte) bool {
	if len(t.key) == 0 {
		return ends(row, len(row))
	}
	var buf [64]byte
	key := buf[:0]
	for _, i := range t.key {
		key = append(appendValue(key, t.columns[i].form, values[i]), ',')
	}
	return ends(key, len(row))
}

// ends is true for one in cutSize/length texts, so that pieces of long rows and of short
// ones become equally long.
func ends(text []byte, length int) bool {
	const each = math.MaxUint64 / cutSize
	return xxhash.Sum64(text) < each*uint64(min(length, cutSize))
}

// writePages writes a SQLite file and ends pieces after whole pages, where the page says
// so: a page with rows is the same wherever it lies in the file.
func (w *writer) writePages(file io.Reader) error {
	head := make([]byte, 18)
	if _, err := io.ReadFull(file, head); err != nil {
		return fmt.Errorf("reading the head of the database: %w", err)
	}
	size := int(head[16])<<8 | int(head[17])
	if size == 1 {
		size = 64 << 10 // as the format writes it
	}
	if size < 512 {
		return fmt.Errorf("a database with pages of %d bytes", size)
	}
	page := make([]byte, size)
	for n := copy(page, head); ; n = 0 {
		m, err := io.ReadFull(file, page[n:])
		if n += m; n > 0 {
			w.write(page[:n])
			if ends(page[:n], n) {
				w.flush()
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return w.err()
		case err != nil:
			return fmt.Errorf("reading the copy of the database: %w", err)
		case w.err() != nil:
			return w.err()
		}
	}
}
