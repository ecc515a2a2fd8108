package tables

// Description is what Open found, for people.
type Description struct {
	Database      string   `json:"database"` // mysql, postgres, sqlite
	Server        string   `json:"server"`   // the server's own version text
	Layout        Layout   `json:"layout"`
	Table         string   `json:"table"`
	Times         string   `json:"times"` // "unix seconds" or "wall clock"
	AttemptsLimit int      `json:"attemptsLimit,omitempty"`
	FailedTable   string   `json:"failedTable"`
	FailedUUID    bool     `json:"failedUuid"`
	OrderedIndex  string   `json:"orderedIndex"` // "" where the offered index is missing
	Transactional bool     `json:"transactional"`
	Notes         []string `json:"notes,omitempty"`
}

// Describe says what Open found.
func (s *Tables) Describe() Description {
	t := s.Layout.Table()
	found := Description{Database: s.Dialect.Name, Server: s.Server, Layout: s.Layout.Name(), Table: t.Plain,
		AttemptsLimit: t.AttemptsLimit,
		FailedTable:   s.Options.Prefix + s.Options.FailedTable, FailedUUID: s.Failed.UUID, OrderedIndex: t.Ordered,
		Transactional: t.Transactional, Times: "unix seconds"}
	if t.Due.Kind != unixSeconds {
		found.Times = "wall clock"
		found.Notes = append(found.Notes, "the times of "+t.Plain+" are wall-clock texts in the connection's time "+
			"zone: a program that writes them must use the same zone")
	}
	if t.Ordered == "" {
		found.Notes = append(found.Notes, "the index that serves claims is missing: \"cmsjobs migrate index\" adds it")
	}
	if !t.Transactional {
		found.Notes = append(found.Notes, t.Plain+" has an engine without transactions: jobs are taken one by one "+
			"and a crash between two writes may lose history; use InnoDB")
	}
	if !s.Failed.UUID {
		found.Notes = append(found.Notes, found.FailedTable+" has no uuid column: queue:retry takes its id")
	}
	return found
}
