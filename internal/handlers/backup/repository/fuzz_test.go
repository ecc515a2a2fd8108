package repository

import (
	"bytes"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func object(b byte) string {
	return strings.Repeat(string("0123456789abcdef"[b%16]), 64) + "-aaaaaaaaaaaaa"
}

func samples() []Entry {
	at := time.Date(2026, 11, 22, 1, 2, 3, 4, time.UTC)
	return []Entry{
		{Name: "media/a", Mode: 0o644, Modified: at, Identity: "1:2", Sum: sumOf(nil)},
		{Name: "media/b\n\\\xff", Size: 7, Mode: 0o640, Modified: at, Sum: Sum{1}, Pieces: []Piece{
			{Object: object(1), Offset: 5, Stored: 7, Length: 7, Sum: Sum{1}},
		}},
		{Name: "media/c", Size: pieceSize + 1, Modified: at, Sum: Sum{2}, Pieces: []Piece{
			{Object: object(1), Stored: 10, Packed: true, Length: pieceSize, Sum: Sum{3}},
			{Object: object(2) + encrypted, Offset: 9, Stored: 1, Length: 1, Sum: Sum{4}},
		}},
	}
}

func manifestOf(entries []Entry) (text []byte) {
	for _, e := range entries {
		text = e.appendTo(text)
	}
	return text
}

func read(text []byte, cut int) ([]Entry, error) {
	var all []Entry
	d := &decoder{}
	take := func(e Entry) bool { all = append(all, e); return true }
	for part := range chunks(text, cut) {
		if _, err := d.feed(part, take); err != nil {
			return all, err
		}
	}
	return all, d.end(take)
}

func chunks(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(max(n, 1), len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

// A manifest that is taken is the one that would be written, and no file of it leaves
// its folder.
func FuzzManifest(f *testing.F) {
	f.Add(manifestOf(samples()), 10)
	for _, line := range strings.SplitAfter(string(manifestOf(samples())), "\n") {
		f.Add([]byte(line), 1000)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		all, err := read(text, cut)
		for _, e := range all {
			if path.Clean("/"+e.Name) != "/"+e.Name || strings.ContainsRune(e.Name, 0) {
				t.Errorf("the name %q is taken", e.Name)
			}
			sum := int64(0)
			for _, p := range e.Pieces {
				sum += p.Length
				if p.check() != nil {
					t.Errorf("the piece %+v is taken", p)
				}
			}
			if sum != e.Size {
				t.Errorf("%d of %d bytes", sum, e.Size)
			}
		}
		if err == nil && !bytes.Equal(manifestOf(all), text) {
			t.Errorf("%q is read as %q", text, manifestOf(all))
		}
	})
}

func sampleRecord() *Record {
	at := time.Date(2026, 11, 22, 1, 2, 3, 4e6, time.UTC)
	return &Record{
		Repository: "aaaaaaaaaaaaa", Started: at, Finished: at, Status: Partial, Files: 3, Bytes: 4,
		Note:     "{\"a\":\t1}\n",
		Manifest: []Piece{{Object: object(1), Offset: 5, Stored: 7, Length: 7, Sum: Sum{1}}},
		Objects:  map[string]int64{object(1): 12, object(2) + encrypted: 1},
	}
}

// A record that is taken is the one that would be written. The text is fuzzed, as the
// bytes are held against the record's name.
func FuzzRecord(f *testing.F) {
	z, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	stored, err := sampleRecord().encode()
	if err != nil {
		f.Fatal(err)
	}
	text, err := z.DecodeAll(stored, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-8])
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = decodeRecord(text) // as bytes: any error is right, a panic is not
		r, err := decodeRecord(w.EncodeAll(text, nil))
		if err != nil {
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := z.DecodeAll(again, nil); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%q is read as %q, %v", text, back, err)
		}
	})
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte(format{id: "aaaaaaaaaaaaa"}.text()))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseFormat(text); err == nil && got.text() != string(text) {
			t.Errorf("%q is read as %+v", text, got)
		}
	})
}

func FuzzEscape(f *testing.F) {
	for _, name := range strange {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if back, ok := unescape(escape(s)); !ok || back != s {
			t.Errorf("%q comes back as %q", s, back)
		}
		if back, ok := unescape(s); ok && escape(back) != s {
			t.Errorf("%q has another form: %q", s, escape(back))
		}
		if strings.ContainsAny(escape(s), "\n\t\r\x00") {
			t.Errorf("%q is written as %q", s, escape(s))
		}
	})
}

// What no writer writes is refused, by line.
func TestHostileManifestsAreRefused(t *testing.T) {
	good := string(manifestOf(samples()))
	if _, err := read([]byte(good), 3); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"a name above the folder": {"media/a\n", "media/../a\n"},
		"an absolute name":        {"media/a\n", "/etc/passwd\n"},
		"a name with NUL":         {"media/a\n", `media/\0000` + "\n"},
		"no order":                {"media/a\n", "media/z\n"},
		"the same name twice":     {"media/c\n", "media/a\n"},
		"an object elsewhere":     {object(1), "../../" + object(1)},
		"a piece too long":        {"\t7\traw", "\t99999999999\traw"},
		"a negative offset":       {"\t5\t7\traw", "\t-5\t7\traw"},
		"fewer bytes":             {"f\t7\t", "f\t8\t"},
		"more bytes":              {"f\t7\t", "f\t6\t"},
		"another type":            {"f\t7\t", "g\t7\t"},
		"no end":                  {"media/c\n", "media/c"},
		"a set-uid mode":          {"0644", "4644"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s changes nothing", what)
		}
		if _, err := read([]byte(text), 100); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := read(bytes.Repeat([]byte("f"), 1<<20), 4096); err == nil {
		t.Error("an endless line is taken")
	}
}
