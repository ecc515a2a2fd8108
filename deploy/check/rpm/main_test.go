package main

import (
	"encoding/binary"
	"strings"
	"testing"
)

// made is a package of one header, behind a signature without entries.
func made(tags map[uint32][]byte) []byte {
	intro := func(count, size int) []byte {
		b := append(append([]byte{}, magic...), 0, 0, 0, 0)
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(count)), uint32(size))
	}
	var index, store []byte
	for tag, value := range tags {
		count := strings.Count(string(value), "\x00")
		if tag == dirIndexes {
			count = len(value) / 4
		}
		for _, n := range []int{int(tag), 0, len(store), count} {
			index = binary.BigEndian.AppendUint32(index, uint32(n))
		}
		store = append(store, value...)
	}
	raw := append(make([]byte, leadSize), intro(0, 0)...)
	raw = append(raw, intro(len(tags), len(store))...)
	return append(append(raw, index...), store...)
}

func TestFilesOfAPackage(t *testing.T) {
	tags := map[uint32][]byte{dirNames: []byte("/usr/bin/\x00/etc/\x00"), baseNames: []byte("cmsjobs\x00"),
		dirIndexes: {0, 0, 0, 0}}
	whole := made(tags)
	if names, err := files(whole); err != nil || len(names) != 1 || names[0] != "/usr/bin/cmsjobs" {
		t.Errorf("%v, %v", names, err)
	}
	for size := range whole {
		if names, err := files(whole[:size]); err == nil {
			t.Fatalf("of %d bytes it reads %v", size, names)
		}
	}
	tags[preIn+1] = []byte("rm -rf /\x00")
	if _, err := files(made(tags)); err == nil || !strings.Contains(err.Error(), "runs a script") {
		t.Errorf("with a script: %v", err)
	}
	delete(tags, preIn+1)
	tags[dirIndexes] = []byte{0, 0, 0, 9}
	if names, err := files(made(tags)); err == nil {
		t.Errorf("in no folder: %v", names)
	}
}
