package indexcopy

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func rows(n int) []Row {
	var all []Row
	for i := range n {
		all = append(all, Row{Key: fmt.Sprintf("backup-%06d.json", i), Size: int64(i), Modified: int64(i) * 7,
			Tag: fmt.Sprintf(`"%x"`, i), Entry: json.RawMessage(`{"id":"b"}`)})
	}
	return all
}

func keys(t *testing.T) (ed25519.PrivateKey, func(string) ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private, func(name string) ed25519.PublicKey {
		if name != "ours" {
			return nil
		}
		return public
	}
}

func TestACatalogIsReadAsItWasWritten(t *testing.T) {
	private, trusted := keys(t)
	want := rows(3000)
	data, err := Write(want, "ours", private)
	if err != nil {
		t.Fatal(err)
	}
	var got []Row
	if err := Read(bytes.NewReader(data), trusted, func(r Row) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if len(got) != 3000 || !bytes.Equal(a, b) {
		t.Errorf("%d rows, the first is %+v", len(got), got[0])
	}
}

func TestOnlyATrustedCatalogIsRead(t *testing.T) {
	private, trusted := keys(t)
	stranger, _ := keys(t)
	good, err := Write(rows(10), "ours", private)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := Write(rows(10), "ours", stranger)
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := Write(rows(10), "theirs", private)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-5] ^= 1
	for what, data := range map[string][]byte{"a forged one": forged, "one by a stranger": unknown,
		"a changed one": flipped, "a torn one": good[:len(good)-3]} {
		err := Read(bytes.NewReader(data), trusted, func(Row) { t.Errorf("%s is read", what) })
		if !errors.Is(err, ErrUntrusted) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	good, err := Write(rows(3), "ours", private)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(magic + " ours \nx"))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		err := Read(bytes.NewReader(data), func(string) ed25519.PublicKey { return public }, func(Row) { n++ })
		if err != nil && n > 0 && !bytes.Equal(data, good) {
			t.Errorf("%d rows of what is no copy of an index: %v", n, err)
		}
		_ = unpack(data, func(Row) {})
	})
}
