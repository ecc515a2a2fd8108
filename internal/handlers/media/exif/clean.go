package exif

import (
	"cmp"
	"slices"
)

// kept are the tags that Clean copies: of IFD0 and of the Exif IFD.
var kept = map[uint16]bool{
	// description, make, model, resolution
	0x010e: true, 0x010f: true, 0x0110: true, 0x011a: true, 0x011b: true, 0x0128: true,
	0x0131: true, 0x0132: true, 0x013b: true, 0x8298: true, // software, time, artist, copyright
	0x829a: true, 0x829d: true, 0x8822: true, 0x8827: true, // exposure, aperture, programme, sensitivity
	0x9000: true, 0x9003: true, 0x9004: true, 0x9010: true, 0x9011: true, 0x9012: true, // version, times, zones
	// shutter … focal length
	0x9201: true, 0x9202: true, 0x9203: true, 0x9204: true, 0x9205: true, 0x9207: true, 0x9208: true, 0x9209: true,
	0x920a: true,
	// colour space, modes, lens
	0xa001: true, 0xa402: true, 0xa403: true, 0xa405: true, 0xa406: true, 0xa433: true, 0xa434: true,
}

// Clean rewrites EXIF data ("Exif\0\0" in front or not) with the tags of the
// allow-list only and the orientation 1, as the pixels it goes with are
// upright. The result is a TIFF structure without "Exif\0\0".
func Clean(data []byte) ([]byte, error) {
	t, first, err := open(data)
	if err != nil {
		return nil, err
	}
	main, err := t.directory(first, func(tag uint16) bool { return kept[tag] || tag == tagExifIFD })
	if err != nil {
		return nil, err
	}
	var detail []entry
	main = slices.DeleteFunc(main, func(e entry) bool {
		if e.tag != tagExifIFD {
			return false
		}
		if e.kind == typeLong && e.count == 1 && detail == nil {
			// A detail directory that is broken is left out, the rest stays.
			detail, _ = t.directory(t.order.Uint32(e.value), func(tag uint16) bool { return kept[tag] })
		}
		return true
	})
	main = append(main, t.number(tagOrientation, typeShort, 1))
	return t.write(main, detail), nil
}

func (t tiff) number(tag, kind uint16, v uint32) entry {
	value := make([]byte, sizes[kind])
	if kind == typeShort {
		t.order.PutUint16(value, uint16(v))
	} else {
		t.order.PutUint32(value, v)
	}
	return entry{tag: tag, kind: kind, count: 1, value: value}
}

// write lays out a header, IFD0 and, where it has entries, the Exif IFD.
func (t tiff) write(main, detail []entry) []byte {
	out := slices.Clone(t.data[:8])
	t.order.PutUint32(out[4:], 8)
	if len(detail) == 0 {
		return t.appendDirectory(out, main)
	}
	// The pointer's value is the length of what is written before it, which
	// does not depend on the value.
	length := len(t.appendDirectory(out, append(slices.Clone(main), t.number(tagExifIFD, typeLong, 0))))
	out = t.appendDirectory(out, append(slices.Clone(main), t.number(tagExifIFD, typeLong, uint32(length))))
	return t.appendDirectory(out, detail)
}

func (t tiff) appendDirectory(out []byte, entries []entry) []byte {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.tag, b.tag) })
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.tag == b.tag })
	order := t.order.(interface {
		AppendUint16([]byte, uint16) []byte
		AppendUint32([]byte, uint32) []byte
	})
	values := make([]byte, 0, 256)
	base := len(out) + 2 + 12*len(entries) + 4
	out = order.AppendUint16(out, uint16(len(entries)))
	for _, e := range entries {
		out = order.AppendUint32(order.AppendUint16(order.AppendUint16(out, e.tag), e.kind), e.count)
		if len(e.value) <= 4 {
			out = append(append(out, e.value...), make([]byte, 4-len(e.value))...)
			continue
		}
		out = order.AppendUint32(out, uint32(base+len(values)))
		values = append(values, e.value...)
		if len(values)%2 == 1 {
			values = append(values, 0)
		}
	}
	return append(order.AppendUint32(out, 0), values...)
}
