package verify

import "github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"

// counter parses SQL without restoring it.
type counter struct {
	split *dump.Splitter
	part  dump.Part
	rows  int64
}

// maxParsed bounds a statement in the parser.
const maxParsed = 1 << 30

func newCounter() *counter {
	c := &counter{}
	c.reset()
	return c
}

func (c *counter) reset() {
	c.split = dump.NewSplitter(maxParsed, func(statement []byte) error {
		c.rows += dump.CountRows(statement)
		return nil
	})
}

func (c *counter) load(part dump.Part, piece []byte) error {
	if part != c.part {
		if err := c.close(); err != nil {
			return err
		}
		c.reset()
		c.part = part
	}
	_, err := c.split.Write(piece)
	return err
}

func (c *counter) close() error { return c.split.Close() }
