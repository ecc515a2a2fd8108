package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// MaxEntry bounds what is held in memory of an entry: pieces and lists are
// made far smaller, and a manifest of 5,000 tables has a few MiB.
const (
	MaxEntry   = 256 << 20
	usualEntry = 4 << 20
)

func ReadEntry(e archive.Entry, content io.Reader) ([]byte, error) {
	var data bytes.Buffer
	// Pieces have their size at once; what claims more grows as it comes.
	data.Grow(int(min(max(e.Size, 0), usualEntry)) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(content, MaxEntry+1)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", e.Name, err)
	}
	if data.Len() > MaxEntry {
		return nil, fmt.Errorf("%s is larger than a backup makes it: %w", e.Name, archive.ErrUnsafe)
	}
	return data.Bytes(), nil
}

// ReadList gives visit each file of an archive's list of files, a line each.
func ReadList(e archive.Entry, content io.Reader, visit func(PackedFile) error) error {
	lines := bufio.NewScanner(io.LimitReader(content, MaxEntry))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f PackedFile
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return fmt.Errorf("reading %s: %w", e.Name, err)
		}
		if err := visit(f); err != nil {
			return err
		}
	}
	return lines.Err()
}

func DecodeEntry[T any](content io.Reader, into **T) error {
	data, err := ReadEntry(archive.Entry{Name: "the manifest"}, content)
	if err != nil {
		return err
	}
	*into = new(T)
	if err := json.Unmarshal(data, *into); err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	return nil
}

// IsPart knows the parts of a database among the entries by their folders.
func IsPart(name string) bool {
	return strings.HasPrefix(name, DatabaseFolder) || strings.HasPrefix(name, RoutinesFolder)
}

// PartOf reads part and table from an entry's name, which a streaming reader
// has before the manifest.
func PartOf(name string) (dump.Part, string) {
	part := dump.Main
	rest, extra := strings.CutPrefix(name, RoutinesFolder)
	if extra {
		part = dump.Extra
	} else {
		rest = strings.TrimPrefix(name, DatabaseFolder)
	}
	_, table, _ := strings.Cut(strings.TrimSuffix(rest, ".sql"), "-")
	return part, tableOfEntry(table)
}

// TableEntry makes a table's name safe as a file's name.
func TableEntry(table string) string {
	escaped := strings.ReplaceAll(url.PathEscape(table), "=", "%3D")
	return strings.ReplaceAll(escaped, "%", "=")
}

// tableOfEntry is entryName's reverse.
func tableOfEntry(name string) string {
	table, err := url.PathUnescape(strings.ReplaceAll(name, "=", "%"))
	if err != nil {
		return name
	}
	return table
}
