package binlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-sql-driver/mysql"
)

// query applies a statement of the log: one that begins or ends a transaction, a
// definition, or a change that is logged as its text.
func (p *replayer) query(e event, q *replication.QueryEvent) error {
	before := p.before
	p.before = nil
	switch text := string(bytes.TrimSpace(q.Query[:min(len(q.Query), 64)])); {
	case text == "BEGIN":
		p.group.explicit = true
		return nil
	case text == "COMMIT":
		return p.commit(int64(e.Header.Timestamp))
	case text == "ROLLBACK":
		return p.end(false)
	case strings.HasPrefix(text, "XA "):
		return p.xa(text)
	}
	return p.text(e, q, before)
}

// text applies a statement that is no begin or end of a transaction, if it is of the
// database.
func (p *replayer) text(e event, q *replication.QueryEvent, before []string) error {
	context, err := readSettings(q.StatusVars)
	if err != nil {
		return err
	}
	s, err := p.names.rewrite(q.Query, context.mode)
	home := strings.EqualFold(string(q.Schema), p.t.Schema)
	switch {
	case err != nil && home:
		return fmt.Errorf("reading a statement: %w", err)
	case err != nil, !home && !s.ours, s.elsewhere && !definition(s):
		return nil
	}
	if !p.group.explicit && p.group.moment == 0 {
		if err := p.late(int64(e.Header.Timestamp)); err != nil {
			return err
		}
	}
	what := s.judge()
	if what == ignore {
		p.note("left out: %s", s)
		return nil
	}
	if err := p.fits(s, what, context, home, before); err != nil {
		return err
	}
	return p.run(e, q, s, context, before)
}

// fits refuses what would not be the same in the other database.
func (p *replayer) fits(s statement, what action, c settings, home bool, before []string) error {
	switch {
	case what != run:
		return fmt.Errorf("the statement %s cannot be applied to a copy: restore to a moment before it", s)
	case s.other != "":
		return fmt.Errorf("the statement %s names the database %s too", s, s.other)
	case !home && !definition(s):
		return fmt.Errorf("the statement %s changes the database from within another one", s)
	case c.charset[0] > 0 && !readable(c.charset[0]):
		return fmt.Errorf("the statement %s is written in a character set that is not read (collation %d)", s,
			c.charset[0])
	}
	for _, b := range before {
		if b == "" {
			return fmt.Errorf("the statement %s needs what cannot be replayed", s)
		}
	}
	return nil
}

// definition says whether a statement defines something.
func definition(s statement) bool {
	switch s.words[0] {
	case "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE":
		return true
	}
	return false
}

// unreadable are the collations of character sets in which a byte of a character may
// look like a quote or a backslash: big5, sjis, gbk, cp932, gb18030, and those of two
// bytes and more for each character.
var unreadable = map[uint16]bool{1: true, 84: true, 13: true, 88: true, 28: true, 87: true, 95: true, 96: true,
	248: true, 249: true, 250: true, 35: true, 90: true, 54: true, 55: true, 56: true, 60: true, 61: true, 62: true}

func readable(collation uint16) bool { return !unreadable[collation] }

var withDefiner = regexp.MustCompile("^(?i)(CREATE\\s+(?:OR\\s+REPLACE\\s+)?(?:ALGORITHM\\s*=\\s*\\w+\\s+)?)" +
	"DEFINER\\s*=\\s*(?:`(?:[^`]|``)*`|\\w+)(?:@(?:`(?:[^`]|``)*`|\\w+))?\\s*")

func (p *replayer) run(e event, q *replication.QueryEvent, s statement, c settings, before []string) error {
	if err := p.rows.flush(p); err != nil {
		return err
	}
	if err := p.open(); err != nil {
		return err
	}
	text := s.text
	if p.t.DropDefiners {
		text = withDefiner.ReplaceAll(text, []byte("$1"))
	}
	// MySQL keeps the transaction of a CREATE … SELECT open; here the rows come in another.
	text = bytes.TrimSuffix(bytes.TrimSpace(text), []byte("START TRANSACTION"))
	moment := fmt.Sprintf("SET TIMESTAMP = %d.%06d", e.Header.Timestamp, c.micro)
	if err := p.settle(c.statement(), append(before, moment)); err != nil {
		return err
	}
	err := p.exec(string(text))
	switch {
	case err == nil:
	case q.ErrorCode != 0 && isError(err, q.ErrorCode): // as it was
	case definition(s) && (isError(err, noSuchTable) || isError(err, unknownTable)):
		p.note("left out, as its table is not in the backup: %s", s)
		return nil
	default:
		return fmt.Errorf("%s: %w", s, err)
	}
	if !definition(s) {
		if !p.group.explicit {
			p.applied(int64(e.Header.Timestamp))
		}
		return nil
	}
	p.group.open = false // the server committed
	p.result.Statements++
	p.applied(int64(e.Header.Timestamp))
	return p.look()
}

// settle makes the session what that of a statement was.
func (p *replayer) settle(set string, more []string) error {
	if set != p.state {
		if err := p.exec(set); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
		p.state = set
	}
	for _, statement := range more {
		if err := p.exec(statement); err != nil {
			return fmt.Errorf("%.80s: %w", statement, err)
		}
	}
	return nil
}

// The server's errors of a statement whose table is not there.
const (
	noSuchTable  = 1146
	unknownTable = 1051
)

func isError(err error, number uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == number
}

// xa follows a transaction of several resources. What it changes in other databases is
// nothing to us.
func (p *replayer) xa(text string) error {
	if strings.HasPrefix(text, "XA START") || strings.HasPrefix(text, "XA BEGIN") {
		p.group.xa = true
	}
	return nil
}

// value reads a seed of RAND() or a variable, which the next statement uses.
func (p *replayer) value(e event) error {
	_, body := e.parts()
	u := binary.LittleEndian
	if e.Header.EventType == randEvent {
		if len(body) < 16 {
			return errStatus
		}
		p.before = append(p.before, fmt.Sprintf("SET @@session.rand_seed1 = %d, @@session.rand_seed2 = %d",
			u.Uint64(body), u.Uint64(body[8:])))
		return nil
	}
	statement, err := variable(body)
	p.before = append(p.before, statement)
	return err
}

// The kinds of values of variables.
const (
	textValue = iota
	realValue
	intValue
)

// variable is the SET of a variable; "" where its kind is not known.
func variable(body []byte) (string, error) {
	u := binary.LittleEndian
	if len(body) < 5 || len(body) < 5+int(u.Uint32(body)) {
		return "", errStatus
	}
	name := quotedName(string(body[4:][:u.Uint32(body)]))
	body = body[4+u.Uint32(body):]
	if body[0] != 0 {
		return "SET @" + name + " = NULL", nil
	}
	if len(body) < 10 || len(body) < 10+int(u.Uint32(body[6:])) {
		return "", errStatus
	}
	value, rest := body[10:][:u.Uint32(body[6:])], body[10+u.Uint32(body[6:]):]
	literal := ""
	switch kind := body[1]; {
	case kind == textValue:
		literal = textLiteral(u.Uint32(body[2:]), value)
	case len(value) == 8:
		literal = numberLiteral(kind, u.Uint64(value), len(rest) > 0 && rest[0]&1 != 0)
	}
	if literal == "" {
		return "", nil
	}
	return "SET @" + name + " = " + literal, nil
}

// textLiteral is a text of a collation; "" where that is not known.
func textLiteral(id uint32, value []byte) string {
	charset, collation, known := collationOf(id)
	switch {
	case id == binaryCollation:
		return "X'" + hex.EncodeToString(value) + "'"
	case !known:
		return ""
	}
	return fmt.Sprintf("_%s X'%s' COLLATE %s", charset, hex.EncodeToString(value), collation)
}

// numberLiteral is a number; "" where its kind is not known.
func numberLiteral(kind byte, bits uint64, unsigned bool) string {
	switch {
	case kind == realValue:
		return strconv.FormatFloat(math.Float64frombits(bits), 'e', -1, 64)
	case kind == intValue && unsigned:
		return strconv.FormatUint(bits, 10)
	case kind == intValue:
		return strconv.FormatInt(int64(bits), 10)
	}
	return ""
}

const binaryCollation = 63

// collationOf names the collations that texts of variables have. Others are refused.
func collationOf(id uint32) (charset, collation string, known bool) {
	names := map[uint32][2]string{8: {"latin1", "latin1_swedish_ci"}, 11: {"ascii", "ascii_general_ci"},
		45: {"utf8mb4", "utf8mb4_general_ci"}, 46: {"utf8mb4", "utf8mb4_bin"}, 224: {"utf8mb4", "utf8mb4_unicode_ci"},
		246: {"utf8mb4", "utf8mb4_unicode_520_ci"}, 255: {"utf8mb4", "utf8mb4_0900_ai_ci"},
		2304: {"utf8mb4", "utf8mb4_uca1400_ai_ci"}, 33: {"utf8mb3", "utf8mb3_general_ci"}}
	n, known := names[id]
	return n[0], n[1], known
}
