package picture

import (
	"encoding/binary"
	"fmt"
)

// AVIF is a tree of boxes (ISO/IEC 14496-12, 4.2): a picture is an item of the box meta,
// and its size, turn and colours are properties in iprp (ISO/IEC 23008-12, 9.3).

// avifMost bounds the boxes and properties of a file that are looked at.
const avifMost = 4096

// isAVIF says whether data begins with a box ftyp that names AVIF among its brands.
func isAVIF(data []byte) bool {
	if len(data) < 16 || string(data[4:8]) != "ftyp" {
		return false
	}
	size := int(min(binary.BigEndian.Uint32(data), uint32(min(len(data), 1<<12)))) //nolint:gosec // at most 4096
	for at := 8; at+4 <= size; at += 4 {
		if brand := string(data[at : at+4]); at != 12 && (brand == "avif" || brand == "avis") { // 12 has a version
			return true
		}
	}
	return false
}

// avifItem is what the properties of the primary item say.
type avifItem struct {
	width, height int
	turns         int // by 90° against the clock
	mirror        int // 0 none, 1 top and bottom are exchanged, 2 left and right
	profile       []byte
}

func (h *Header) readAVIF(data []byte) error {
	if _, err := boxOf(data, "moov"); err == nil {
		return fmt.Errorf("an AVIF that moves: %w", ErrUnsupported)
	}
	meta, err := boxOf(data, "meta")
	if err != nil {
		return err
	}
	if len(meta) < 4 {
		return fmt.Errorf("%w: it has no box meta", ErrCorrupt)
	}
	properties, err := boxOf(meta[4:], "iprp")
	if err != nil {
		return err
	}
	primary, err := primaryItem(meta[4:])
	if err != nil {
		return err
	}
	list, err := boxOf(properties, "ipco")
	if err != nil {
		return err
	}
	numbers, err := associated(properties, primary)
	if err != nil {
		return err
	}
	item, err := describeItem(list, numbers)
	if err != nil {
		return err
	}
	h.StoredWidth, h.StoredHeight, h.ICC = item.width, item.height, item.profile
	h.Orientation = item.orientation()
	return nil
}

// boxes calls each for every box of b until it returns false.
func boxes(b []byte, each func(kind string, body []byte) bool) error {
	for n := 0; len(b) >= 8; n++ {
		if n == avifMost {
			return fmt.Errorf("%w: it has more than %d boxes", ErrCorrupt, avifMost)
		}
		head, size := uint64(8), uint64(binary.BigEndian.Uint32(b))
		switch {
		case size == 1 && len(b) >= 16:
			head, size = 16, binary.BigEndian.Uint64(b[8:])
		case size == 0: // to the end
			size = uint64(len(b))
		}
		if size < head || size > uint64(len(b)) {
			return fmt.Errorf("%w: a box ends behind the file", ErrCorrupt)
		}
		if !each(string(b[4:8]), b[head:size]) {
			return nil
		}
		b = b[size:]
	}
	return nil
}

// boxOf is the body of the first box of a kind.
func boxOf(b []byte, kind string) (body []byte, err error) {
	err = boxes(b, func(k string, content []byte) bool {
		if k == kind {
			body = content
		}
		return body == nil
	})
	if err == nil && body == nil {
		err = fmt.Errorf("%w: it has no box %s", ErrCorrupt, kind)
	}
	return body, err
}

func primaryItem(meta []byte) (uint32, error) {
	body, err := boxOf(meta, "pitm")
	switch {
	case err != nil:
		return 0, err
	case len(body) >= 6 && body[0] == 0:
		return uint32(binary.BigEndian.Uint16(body[4:])), nil
	case len(body) >= 8 && body[0] == 1:
		return binary.BigEndian.Uint32(body[4:]), nil
	}
	return 0, fmt.Errorf("%w: its primary item is not named", ErrCorrupt)
}

// associated are the numbers, from 1, of an item's properties in their order.
func associated(properties []byte, item uint32) (numbers []int, err error) {
	err = boxes(properties, func(kind string, b []byte) bool {
		if kind != "ipma" || len(b) < 8 {
			return true
		}
		idBytes, numberBytes := 2, 1
		if b[0] > 0 { // the version
			idBytes = 4
		}
		if b[3]&1 != 0 { // the flags
			numberBytes = 2
		}
		essential := uint32(1) << (8*numberBytes - 1) // a bit above the number
		r := reader{b[8:]}
		for range min(binary.BigEndian.Uint32(b[4:]), avifMost) {
			id := r.number(idBytes)
			for range r.number(1) {
				if n := r.number(numberBytes); id == item {
					numbers = append(numbers, int(n&^essential))
				}
			}
		}
		return true
	})
	if err == nil && len(numbers) == 0 {
		err = fmt.Errorf("%w: its picture has no properties", ErrCorrupt)
	}
	return numbers, err
}

// reader takes numbers from bytes; behind their end all are 0.
type reader struct{ rest []byte }

func (r *reader) number(bytes int) (n uint32) {
	if len(r.rest) < bytes {
		r.rest = nil
		return 0
	}
	for _, b := range r.rest[:bytes] {
		n = n<<8 | uint32(b)
	}
	r.rest = r.rest[bytes:]
	return n
}

func describeItem(list []byte, numbers []int) (x avifItem, err error) {
	var all [][]byte
	var kinds []string
	if err := boxes(list, func(kind string, body []byte) bool {
		kinds, all = append(kinds, kind), append(all, body)
		return true
	}); err != nil {
		return x, err
	}
	for _, n := range numbers {
		if n < 1 || n > len(all) {
			continue // a property that is not there says nothing
		}
		switch b := all[n-1]; kinds[n-1] {
		case "ispe":
			if len(b) >= 12 {
				x.width, x.height = int(binary.BigEndian.Uint32(b[4:])), int(binary.BigEndian.Uint32(b[8:]))
			}
		case "irot":
			if len(b) >= 1 {
				x.turns = int(b[0] & 3)
			}
		case "imir":
			if len(b) >= 1 {
				x.mirror = 1 + int(b[0]&1)
			}
		case "colr":
			if len(b) > 4 && (string(b[:4]) == "prof" || string(b[:4]) == "rICC") {
				x.profile = b[4:]
			}
		}
	}
	return x, nil
}

// orientation is the turn and then the mirror as EXIF numbers them.
func (x avifItem) orientation() int {
	return [4][3]int{{1, 4, 2}, {8, 5, 7}, {3, 2, 4}, {6, 7, 5}}[x.turns][x.mirror]
}
