package history

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// cursor is a position in each record source by name; that in the history has a
// moment besides, named endedPart.
type cursor map[string]int64

const (
	atEnd     = -1
	endedPart = "t"
)

// of is the position in a record source.
func (c cursor) of(name string) keysetCursor {
	p := keysetCursor{key: c[name]}
	if name == "r" {
		p.ended = c[endedPart]
	}
	return p
}

func (c cursor) put(name string, p keysetCursor) {
	c[name] = p.key
	if name == "r" {
		c[endedPart] = p.ended
	}
}

func (c cursor) String() string {
	var parts []string
	for _, name := range []string{"w", "f", "r", endedPart} {
		if key, there := c[name]; there {
			parts = append(parts, name+strconv.FormatInt(key, 36))
		}
	}
	return strings.Join(parts, ".")
}

func parseCursor(text string) (cursor, error) {
	c := cursor{}
	if text == "" {
		return c, nil
	}
	for _, part := range strings.Split(text, ".") {
		if len(part) < 2 || !strings.Contains("wfr"+endedPart, part[:1]) {
			return nil, jobs.Invalid(phrase.Errorf("%.60q is no cursor of a list: take the one that the list gave",
				text))
		}
		key, err := strconv.ParseInt(part[1:], 36, 64)
		if err != nil || key < atEnd {
			return nil, jobs.Invalid(phrase.Errorf("%.60q is no cursor of a list: take the one that the list gave",
				text))
		}
		c[part[:1]] = key
	}
	if c["r"] > 0 && c[endedPart] == 0 {
		return nil,
			jobs.Invalid(phrase.Errorf("the cursor %.60q is of an older version: begin at the list's first part",
				text))
	}
	return c, nil
}

// keysetCursor is where a record source is read on from: above or below a key.
type keysetCursor struct {
	key    int64
	ended  int64 // history only, Unix ms: it is ordered by when runs ended, then by key
	oldest bool  // upwards, oldest first; else downwards, newest first
}

// condition is the SQL of a position; "" at the beginning.
func (p keysetCursor) condition(column string) string {
	switch {
	case p.key == 0:
		return "1=1"
	case p.oldest:
		return fmt.Sprintf("%s > %d", column, p.key)
	}
	return fmt.Sprintf("%s < %d", column, p.key)
}

func (p keysetCursor) order(column string) string {
	if p.oldest {
		return " ORDER BY " + column
	}
	return " ORDER BY " + column + " DESC"
}
