package repository

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Entry is one file of a backup.
type Entry struct {
	Name     string // LABEL/PATH
	Size     int64  // bytes
	Mode     fs.FileMode
	Modified time.Time
	// Identity tells the file from another of the same name and size; "" when it
	// must be read again.
	Identity string
	Sum      Sum // of the content
	Pieces   []Piece
}

// Piece is a part of a file's content, or of a manifest's text, and where it lies.
type Piece struct {
	Object string // the object's name
	Offset int64  // where it begins in the object, decrypted
	Stored int64  // its bytes there
	Packed bool   // a zstd frame; otherwise the content itself
	Length int64  // its bytes, unpacked
	Sum    Sum    // of the content
}

// check refuses what no piece can be.
func (p Piece) check() error {
	if err := checkObject(p.Object); err != nil {
		return err
	}
	if p.Length <= 0 || p.Length > pieceSize || p.Stored <= 0 || p.Offset < 0 || p.Offset+p.Stored > maxObject ||
		!p.Packed && p.Stored != p.Length {
		return fmt.Errorf("%w: a piece of %d bytes, %d stored at %d of %s", ErrDamaged, p.Length, p.Stored, p.Offset,
			p.Object)
	}
	return nil
}

// The words of a line about a piece.
const (
	wordRaw  = "raw"
	wordZstd = "zst"
)

// fields is the piece as it is written. The sum is "=" where the line before has
// it already.
func (p Piece) fields(known *Sum) string {
	coding, sum := wordRaw, p.Sum.String()
	if p.Packed {
		coding = wordZstd
	}
	if known != nil && *known == p.Sum {
		sum = "="
	}
	return fmt.Sprintf("%s\t%d\t%d\t%s\t%d\t%s", p.Object, p.Offset, p.Stored, coding, p.Length, sum)
}

// appendTo writes the lines of an entry.
func (e Entry) appendTo(b []byte) []byte {
	identity := "-"
	if e.Identity != "" {
		identity = "+" + escape(e.Identity)
	}
	b = fmt.Appendf(b, "f\t%d\t%04o\t%s\t%s\t%s\t%s\n", e.Size, e.Mode.Perm(),
		e.Modified.UTC().Format(time.RFC3339Nano),
		identity, e.Sum, escape(e.Name))
	for _, p := range e.Pieces {
		b = fmt.Appendf(b, "p\t%s\n", p.fields(&e.Sum))
	}
	return b
}

// scanner reads the lines of a manifest or a record strictly: a text that it takes
// has one spelling only.
type scanner struct {
	fields []string
	bad    bool
}

func (s *scanner) text() string {
	if len(s.fields) == 0 {
		s.bad = true
		return ""
	}
	f := s.fields[0]
	s.fields = s.fields[1:]
	return f
}

func (s *scanner) escaped() string {
	text, ok := unescape(s.text())
	s.bad = s.bad || !ok
	return text
}

func (s *scanner) number() int64 {
	text := s.text()
	n, err := strconv.ParseInt(text, 10, 64)
	s.bad = s.bad || err != nil || n < 0 || strconv.FormatInt(n, 10) != text
	return n
}

func (s *scanner) mode() fs.FileMode {
	text := s.text()
	n, err := strconv.ParseUint(text, 8, 9)
	s.bad = s.bad || err != nil || fmt.Sprintf("%04o", n) != text
	return fs.FileMode(n)
}

func (s *scanner) time() time.Time {
	text := s.text()
	t, err := time.Parse(time.RFC3339Nano, text)
	s.bad = s.bad || err != nil || t.UTC().Format(time.RFC3339Nano) != text
	return t.UTC()
}

func (s *scanner) sum() (sum Sum) {
	text := s.text()
	if s.bad = s.bad || !isSum(text); !s.bad {
		_, err := hex.Decode(sum[:], []byte(text))
		s.bad = err != nil
	}
	return sum
}

// piece reads a piece; one whose sum is "=" has the known one.
func (s *scanner) piece(known *Sum) Piece {
	p := Piece{Object: s.text(), Offset: s.number(), Stored: s.number()}
	coding := s.text()
	p.Packed = coding == wordZstd
	p.Length = s.number()
	if known != nil && len(s.fields) > 0 && s.fields[0] == "=" {
		s.text()
		p.Sum = *known
	} else {
		p.Sum = s.sum()
		s.bad = s.bad || known != nil && p.Sum == *known
	}
	s.bad = s.bad || !p.Packed && coding != wordRaw || p.check() != nil
	return p
}

// done says whether the line was read to its end without a fault.
func (s *scanner) done() bool { return !s.bad && len(s.fields) == 0 }

// decoder puts the lines of a manifest together to entries.
type decoder struct {
	entry *Entry
	sum   int64 // of the lengths of its pieces
	last  string
	rest  []byte // an unfinished line
	line  int
}

// feed reads more of the text and yields the entries that are complete.
func (d *decoder) feed(text []byte, yield func(Entry) bool) (more bool, err error) {
	for len(text) > 0 {
		line, after, ended := bytes.Cut(text, []byte{'\n'})
		text = after
		if !ended || len(d.rest) > 0 {
			d.rest = append(d.rest, line...)
			line = d.rest
		}
		if len(line) > maxLine {
			return false, d.failed("the line is longer than any can be")
		}
		if !ended {
			break
		}
		d.line++
		if more, err := d.add(string(line), yield); !more || err != nil {
			return more, err
		}
		d.rest = d.rest[:0]
	}
	return true, nil
}

func (d *decoder) failed(why string) error {
	return fmt.Errorf("%w: line %d of a manifest: %s", ErrDamaged, d.line, why)
}

func (d *decoder) add(line string, yield func(Entry) bool) (bool, error) {
	s := &scanner{fields: strings.Split(line, "\t")}
	switch s.text() {
	case "f":
		if more, err := d.finish(yield); !more || err != nil {
			return more, err
		}
		e := &Entry{Size: s.number(), Mode: s.mode(), Modified: s.time()}
		e.Identity = s.identity()
		e.Sum, e.Name = s.sum(), s.escaped()
		if !s.done() || checkName(e.Name) != nil {
			return false, d.failed("it describes no file")
		}
		if e.Name <= d.last {
			return false, d.failed("the files are not in the order of their names")
		}
		d.entry, d.sum, d.last = e, 0, e.Name
	case "p":
		if d.entry == nil {
			return false, d.failed("a piece of no file")
		}
		p := s.piece(&d.entry.Sum)
		if d.sum += p.Length; !s.done() || d.sum > d.entry.Size {
			return false, d.failed("it describes no piece of a file")
		}
		if n := len(d.entry.Pieces); n > 0 && d.entry.Pieces[n-1].Object == p.Object {
			p.Object = d.entry.Pieces[n-1].Object // one copy of the text
		}
		d.entry.Pieces = append(d.entry.Pieces, p)
	default:
		return false, d.failed("it is of no known type")
	}
	return true, nil
}

func (s *scanner) identity() string {
	text := s.text()
	if text == "-" {
		return ""
	}
	rest, found := strings.CutPrefix(text, "+")
	identity, ok := unescape(rest)
	s.bad = s.bad || !found || !ok || identity == ""
	return identity
}

// finish yields the entry that is complete when another line begins, or the text
// ends.
func (d *decoder) finish(yield func(Entry) bool) (bool, error) {
	e := d.entry
	if e == nil {
		return true, nil
	}
	d.entry = nil
	if d.sum != e.Size {
		return false, d.failed(fmt.Sprintf("%s has %d bytes and pieces of %d", e.Name, e.Size, d.sum))
	}
	return yield(*e), nil
}

// end is called after the last line.
func (d *decoder) end(yield func(Entry) bool) error {
	if len(d.rest) > 0 {
		return d.failed("it breaks off")
	}
	_, err := d.finish(yield)
	return err
}
