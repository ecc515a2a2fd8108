package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rpm FILE")
		os.Exit(2)
	}
	raw, err := os.ReadFile(os.Args[1])
	var names []string
	if err == nil {
		names, err = files(raw)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, name := range names {
		fmt.Println(name)
	}
}

// The tags of a header that are read here, by their names in rpm's own rpmtag.h.
const (
	preIn, postUn                   = 1023, 1026 // with POSTIN and PREUN between them: the scripts
	dirIndexes, baseNames, dirNames = 1116, 1117, 1118
	leadSize, introSize, entrySize  = 96, 16, 16
	alignment                       = 8 // of the header behind the signature
)

var magic = []byte{0x8e, 0xad, 0xe8, 1}

// files are the paths that a package installs.
func files(raw []byte) ([]string, error) {
	if len(raw) < leadSize {
		return nil, errors.New("this is no .rpm: it is too short")
	}
	signature, rest, err := section(raw[leadSize:])
	if err != nil {
		return nil, fmt.Errorf("reading the signature: %w", err)
	}
	if pad := len(signature.store) % alignment; pad != 0 && len(rest) >= alignment-pad {
		rest = rest[alignment-pad:]
	}
	header, _, err := section(rest)
	if err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	for tag := uint32(preIn); tag <= postUn; tag++ {
		if _, there := header.entries[tag]; there {
			return nil, fmt.Errorf("it runs a script (tag %d)", tag)
		}
	}
	folders, bases := header.texts(dirNames), header.texts(baseNames)
	at := header.entries[dirIndexes]
	var names []string
	for i, base := range bases {
		place := int(at.offset) + 4*i
		if place+4 > len(header.store) {
			return nil, errors.New("the header ends among the files")
		}
		folder := int(binary.BigEndian.Uint32(header.store[place:]))
		if folder >= len(folders) {
			return nil, fmt.Errorf("the file %s is in no folder", base)
		}
		names = append(names, folders[folder]+base)
	}
	return names, nil
}

// entry says where the values of a tag begin, and how many they are.
type entry struct{ offset, count uint32 }

type header struct {
	entries map[uint32]entry
	store   []byte
}

// section reads one header and returns what follows it.
func section(raw []byte) (header, []byte, error) {
	if len(raw) < introSize || !bytes.HasPrefix(raw, magic) {
		return header{}, nil, errors.New("no header begins here")
	}
	count, size := int(binary.BigEndian.Uint32(raw[8:])), int(binary.BigEndian.Uint32(raw[12:]))
	raw = raw[introSize:]
	if count > len(raw)/entrySize || size > len(raw)-count*entrySize {
		return header{}, nil, errors.New("it is longer than the file")
	}
	h := header{entries: map[uint32]entry{}, store: raw[count*entrySize : count*entrySize+size]}
	for i := range count {
		e := raw[i*entrySize:]
		h.entries[binary.BigEndian.Uint32(e)] = entry{binary.BigEndian.Uint32(e[8:]), binary.BigEndian.Uint32(e[12:])}
	}
	return h, raw[count*entrySize+size:], nil
}

// texts are the strings of a tag; each ends with a zero.
func (h header) texts(tag uint32) (list []string) {
	e := h.entries[tag]
	rest := h.store[min(int(e.offset), len(h.store)):]
	for range e.count {
		text, after, found := bytes.Cut(rest, []byte{0})
		if !found {
			break
		}
		list, rest = append(list, string(text)), after
	}
	return list
}
