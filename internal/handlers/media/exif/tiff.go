package exif

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrMalformed says that the data is no TIFF structure that EXIF allows.
var ErrMalformed = errors.New("malformed EXIF data")

const (
	tagOrientation = 0x0112
	tagExifIFD     = 0x8769

	typeShort    = 3
	typeLong     = 4
	maxEntries   = 512
	maxValueSize = 4096
)

// sizes of the field types 1–12 in bytes.
var sizes = [...]int{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8}

type entry struct {
	tag, kind uint16
	count     uint32
	value     []byte // as many bytes as kind and count say, in the file's order
}

type tiff struct {
	data  []byte
	order binary.ByteOrder
}

func open(data []byte) (tiff, uint32, error) {
	data = bytes.TrimPrefix(data, []byte("Exif\x00\x00"))
	if len(data) < 8 {
		return tiff{}, 0, ErrMalformed
	}
	t := tiff{data: data}
	switch string(data[:4]) {
	case "II*\x00":
		t.order = binary.LittleEndian
	case "MM\x00*":
		t.order = binary.BigEndian
	default:
		return tiff{}, 0, ErrMalformed
	}
	return t, t.order.Uint32(data[4:]), nil
}

// directory reads the entries at offset whose tag want knows.
func (t tiff) directory(offset uint32, want func(tag uint16) bool) ([]entry, error) {
	if uint64(offset)+2 > uint64(len(t.data)) {
		return nil, ErrMalformed
	}
	at := t.data[offset:]
	n := int(t.order.Uint16(at))
	if n > maxEntries || len(at) < 2+12*n {
		return nil, ErrMalformed
	}
	var entries []entry
	for i := range n {
		raw := at[2+12*i:][:12]
		e := entry{tag: t.order.Uint16(raw), kind: t.order.Uint16(raw[2:]), count: t.order.Uint32(raw[4:])}
		if want(e.tag) && t.fill(&e, raw[8:]) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// fill finds an entry's value; an entry whose value is not there or is too
// large is left out rather than spoiling the others.
func (t tiff) fill(e *entry, inline []byte) bool {
	if e.kind == 0 || int(e.kind) >= len(sizes) || e.count == 0 || e.count > maxValueSize {
		return false
	}
	size := sizes[e.kind] * int(e.count)
	if size > maxValueSize {
		return false
	}
	if size <= 4 {
		e.value = inline[:size]
		return true
	}
	offset := uint64(t.order.Uint32(inline))
	if offset+uint64(size) > uint64(len(t.data)) {
		return false
	}
	e.value = t.data[offset:][:size]
	return true
}

// Orientation is 1 to 8 as EXIF numbers them; 1, upright, where data says
// nothing that can be understood. data may begin with "Exif\0\0".
func Orientation(data []byte) int {
	t, first, err := open(data)
	if err != nil {
		return 1
	}
	entries, err := t.directory(first, func(tag uint16) bool { return tag == tagOrientation })
	if err != nil || len(entries) == 0 || entries[0].kind != typeShort {
		return 1
	}
	if o := int(t.order.Uint16(entries[0].value)); o >= 1 && o <= 8 {
		return o
	}
	return 1
}
