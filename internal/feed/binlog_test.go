package feed

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// MariaDB 11.4 leaves the positions of a transaction's events out. These are events of
// a MariaDB 10.11, read as they are and as that server would send them.
func TestEventsWithoutPositions(t *testing.T) {
	const begin = "d238036b0f01000000fc000000000100000100040031302e31312e31392d4d6172696144422d302b6465623132" +
		"75312d6c6f670000000000000000000000000000000000000000d238036b13380d000800120004040404120000" +
		"e400041a08000000080808020000000a0a0a0000000000000a0a0a000000000000000000000000000000000000" +
		"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"0000000000000000000000041304000d0808080a0a0a013b063b3b"
	events := []struct {
		name, hex string
		want      Report
	}{
		{"what the client wrote", "d538036ba0010000007e000000ab9200000000494e5345525420494e544f206a6f6273202871756575652c2070" +
			"61796c6f61642c20617474656d7074732c20617661696c61626c655f61742c20637265617465645f6174292056" +
			"414c55455320282764656661756c74272c20277b7d272c20302c20302c203029255cbcf4", Alive},
		{"the table jobs", "d538036b130100000038000000e392000000003c00000000000100047369746500046a6f62730007080ffc0103" +
			"030303fc030410cacf5e11", Alive},
		{"a row of jobs", "d538036b1701000000420000002593000000003c00000000000100077f90010000000000000007006465666175" +
			"6c74020000007b7d00000000000000000008b6a447", Inserted},
		{"the commit", "d538036b10010000001f0000004493000000009c0000000000000048bf1727", Alive},
		{"the table posts", "d538036b130100000033000000d993000000003f0000000000010004736974650005706f7374730002030f0250" +
			"00028ad5ff2c", Alive},
		{"a row of posts", "d538036b1701000000280000000194000000003f000000000001000203fc010000000178db3aa1ce", Edited},
	}
	b := &Binlog{Schema: "site", Table: "jobs", Content: []string{"posts"}}
	columns := map[string]int{"id": 0, "queue": 1, "payload": 2, "attempts": 3, "reserved_at": 4, "available_at": 5,
		"created_at": 6}
	named := map[Report][]Row{Edited: {{Table: "posts", ID: "1"}},
		Inserted: {{Job: "default\n" + `{"available_at":0,"created_at":0,"id":1,"payload":"{}"}`}}}
	for _, positions := range []bool{true, false} {
		parser := replication.NewBinlogParser()
		parser.SetFlavor(mysql.MariaDBFlavor)
		parser.SetRowsEventDecodeFunc(b.headers)
		parser.SetTableMapOptionalMetaDecodeFunc(noMetadata)
		if _, err := parser.Parse(unhex(t, begin)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			raw := unhex(t, e.hex)
			if !positions {
				binary.LittleEndian.PutUint32(raw[13:], 0)
			}
			event, err := parser.Parse(raw)
			if err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
			if event.Header.LogPos == 0 == positions {
				t.Fatalf("%s has the position %d", e.name, event.Header.LogPos)
			}
			var got Report
			var rows []Row
			handler := &binlogHandler{b, func(r Report, named ...Row) { got, rows = r, named }, columns}
			if err := handler.HandleEvent(event); err != nil || got != e.want {
				t.Errorf("%s, positions %t: report %d, want %d; %v", e.name, positions, got, e.want, err)
			}
			if !slices.Equal(rows, named[e.want]) {
				t.Errorf("%s, positions %t: rows %v", e.name, positions, rows)
			}
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Statements that are logged as they were written: what they may mean.
func TestStatementsOfTheLog(t *testing.T) {
	b := &Binlog{Schema: "site", Table: "jobs", Content: []string{"posts", "slugs"}}
	for statement, want := range map[string]Report{
		"INSERT INTO `jobs` VALUES (1)":            Inserted,
		"insert into jobs select * from posts":     Inserted,
		"UPDATE jobs SET attempts = 1":             Alive,
		"UPDATE `posts` SET status = 'published'":  Edited,
		"delete from slugs where id = 1":           Edited,
		"REPLACE INTO posts VALUES (1)":            Edited,
		"TRUNCATE posts":                           Edited,
		"BEGIN":                                    Alive,
		"UPDATE users SET name = 'x' WHERE id = 1": Alive,
		"CREATE TABLE other (id INT)":              Alive,
		"UPDATE post_tags SET tag_id = 1":          Alive,
	} {
		if got := b.concernsText([]byte(statement)); got != want {
			t.Errorf("%s: report %d, want %d", statement, got, want)
		}
	}
}
