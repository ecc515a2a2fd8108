package dump

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Splitter parts SQL into statements as the plain client does: it knows
// quotes, comments and DELIMITER. It is written to piece by piece, cut
// anywhere, and hands over each whole statement without its delimiter.
type Splitter struct {
	emit      func(statement []byte) error
	max       int
	delimiter string
	buf       []byte
	start     int // of the statement
	at        int // up to here buf is scanned
	state     byte
}

// ErrTorn says that SQL ends within a statement.
var ErrTorn = errors.New("the SQL ends in the middle of a statement")

// states of the scanner: 0 is plain text, a quote is within that quote.
const (
	inLine  = '\n' // in a comment until the line's end
	inBlock = '*'  // in a comment until */
)

// NewSplitter hands statements to emit, whose slice it takes back afterwards.
// A statement longer than limit bytes is an error.
func NewSplitter(limit int, emit func(statement []byte) error) *Splitter {
	return &Splitter{emit: emit, max: limit, delimiter: ";"}
}

// Write implements io.Writer.
func (s *Splitter) Write(p []byte) (int, error) {
	if s.start > 0 {
		n := copy(s.buf, s.buf[s.start:])
		s.buf, s.at, s.start = s.buf[:n], s.at-s.start, 0
	}
	s.buf = append(s.buf, p...)
	for {
		more, err := s.scan()
		if err != nil {
			return 0, err
		}
		if !more {
			break
		}
	}
	if len(s.buf)-s.start > s.max {
		return 0, fmt.Errorf("a statement is longer than %d bytes", s.max)
	}
	return len(p), nil
}

// Close reports what is left over.
func (s *Splitter) Close() error {
	if _, err := s.Write([]byte("\n   ")); err != nil { // enough for every lookahead
		return err
	}
	if rest := bytes.TrimSpace(s.buf[s.start:]); len(rest) > 0 {
		return fmt.Errorf("%w: %.60q", ErrTorn, rest)
	}
	return nil
}

// lookahead is how many bytes a decision may need.
const lookahead = 3

// scan goes on until a statement ends (true) or the buffer does (false).
func (s *Splitter) scan() (bool, error) {
	for s.at < len(s.buf) {
		if s.state != 0 {
			if !s.skip() {
				return false, nil
			}
			continue
		}
		rest := s.buf[s.at:]
		if len(rest) < max(lookahead, len(s.delimiter)) {
			return false, nil
		}
		if s.ends(rest) {
			if statement := s.cut(); len(statement) > 0 {
				return true, s.emit(statement)
			}
			continue
		}
		if whole := s.step(rest); !whole {
			return false, nil
		}
	}
	return false, nil
}

// ends says whether the delimiter comes next.
func (s *Splitter) ends(rest []byte) bool {
	return strings.HasPrefix(s.delimiter, string(rest[0])) && bytes.HasPrefix(rest, []byte(s.delimiter))
}

// cut takes the statement before the delimiter, and goes behind it.
func (s *Splitter) cut() []byte {
	statement := bytes.TrimSpace(s.buf[s.start:s.at])
	s.at += len(s.delimiter)
	s.start = s.at
	return statement
}

// step passes one character, or what it begins; false when that is not whole yet.
func (s *Splitter) step(rest []byte) (whole bool) {
	switch c := rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		s.state = c
	case c == '#' || c == '-' && rest[1] == '-' && rest[2] <= ' ':
		s.state = inLine
		return true
	case c == '/' && rest[1] == '*':
		s.comment(rest[2])
		return true
	case (c == 'D' || c == 'd') && s.blank():
		if done, ok := s.setDelimiter(rest); !done || ok {
			return done
		}
	}
	s.at++
	return true
}

// comment enters /* … */. /*! … */ is a part of the statement whose quotes
// count, so only its opening is passed.
func (s *Splitter) comment(third byte) {
	if third != '!' && third != 'M' {
		s.state = inBlock
	}
	s.at += 2
}

// blank says whether the statement has not begun yet.
func (s *Splitter) blank() bool { return len(bytes.TrimSpace(s.buf[s.start:s.at])) == 0 }

// setDelimiter reads a DELIMITER line. done is false when the line is not
// whole yet.
func (s *Splitter) setDelimiter(rest []byte) (done, ok bool) {
	const word = "delimiter "
	if n := min(len(rest), len(word)); !strings.EqualFold(string(rest[:n]), word[:n]) {
		return true, false
	}
	line, _, whole := bytes.Cut(rest, []byte("\n"))
	if !whole {
		return false, false
	}
	if d := strings.TrimSpace(string(line[len(word):])); d != "" {
		s.delimiter = d
	}
	s.at += len(line) + 1
	s.start = s.at
	return true, true
}

// skip passes over a quoted text or a comment; false when it is not whole yet.
func (s *Splitter) skip() bool {
	if s.state == inLine || s.state == inBlock {
		return s.skipComment()
	}
	buf, quote := s.buf, s.state
	for at := s.at; at < len(buf); at++ {
		switch c := buf[at]; {
		case c == quote: // a doubled quote closes and opens at once
			s.state, s.at = 0, at+1
			return true
		case c == '\\' && quote != '`':
			if at++; at == len(buf) {
				s.at = at - 1
				return false
			}
		}
	}
	s.at = len(buf)
	return false
}

// skipComment drops comments before a statement; a server takes a statement
// of comments alone for an error.
func (s *Splitter) skipComment() bool {
	end := []byte("\n")
	if s.state == inBlock {
		end = []byte("*/")
	}
	i := bytes.Index(s.buf[s.at:], end)
	if i < 0 {
		s.at = max(s.at, len(s.buf)-len(end)+1)
		return false
	}
	opened := s.at
	s.at += i + len(end)
	head := bytes.TrimSpace(s.buf[s.start:opened])
	if len(head) == 0 || string(head) == "/*" || isComment(head) {
		s.start = s.at
	}
	s.state = 0
	return true
}

// isComment says whether text before a comment's end is only its beginning.
func isComment(head []byte) bool {
	return head[0] == '#' && !bytes.Contains(head, []byte("\n")) ||
		bytes.HasPrefix(head, []byte("--")) && !bytes.Contains(head, []byte("\n")) ||
		bytes.HasPrefix(head, []byte("/*")) && !bytes.HasPrefix(head, []byte("/*!")) &&
			!bytes.Contains(head, []byte("*/"))
}

// CountRows counts the rows of an INSERT or REPLACE … VALUES statement; 0 for others.
func CountRows(statement []byte) int64 {
	if !bytes.HasPrefix(statement, []byte("INSERT ")) && !bytes.HasPrefix(statement, []byte("REPLACE ")) {
		return 0
	}
	var rows int64
	depth, values := 0, false
	for i := 0; i < len(statement); i++ {
		switch c := statement[i]; c {
		case '\'', '"', '`':
			i = closing(statement, i)
		case '(':
			if depth == 0 && values {
				rows++
			}
			depth++
		case ')':
			depth--
		case 'V':
			values = values || depth == 0 && bytes.HasPrefix(statement[i:], []byte("VALUES"))
		}
	}
	return rows
}

// closing is where the quoted text that begins at i ends.
func closing(statement []byte, i int) int {
	quote := statement[i]
	for i++; i < len(statement) && statement[i] != quote; i++ {
		if statement[i] == '\\' && quote != '`' {
			i++
		}
	}
	return i
}
