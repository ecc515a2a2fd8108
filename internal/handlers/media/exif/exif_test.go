package exif

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// sample is EXIF data with orientation 6, a model, a GPS directory, an Exif
// directory with a sensitivity, a maker note and a serial number.
func sample(order binary.ByteOrder) []byte {
	t := tiff{order: order, data: []byte("II*\x00\x08\x00\x00\x00")}
	if order == binary.BigEndian {
		t.data = []byte("MM\x00*\x00\x00\x00\x08")
	}
	main := []entry{
		{tag: 0x0110, kind: 2, count: 13, value: []byte("Some camera 1")},
		t.number(tagOrientation, typeShort, 6),
		{tag: 0x8825, kind: typeLong, count: 1, value: []byte{0, 0, 0, 8}},
		{tag: 0x010d, kind: 2, count: 17, value: []byte("SECRET-LOCATION-1")},
	}
	detail := []entry{
		t.number(0x8827, typeShort, 400),
		{tag: 0x927c, kind: 7, count: 17, value: []byte("SECRET-LOCATION-2")},
		{tag: 0xa431, kind: 2, count: 17, value: []byte("SECRET-LOCATION-3")},
	}
	return append([]byte("Exif\x00\x00"), t.write(main, detail)...)
}

func TestOrientation(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if got := Orientation(sample(order)); got != 6 {
			t.Errorf("%v: %d", order, got)
		}
	}
	if got := Orientation([]byte("nothing")); got != 1 {
		t.Errorf("nothing: %d", got)
	}
}

func TestCleanKeepsOnlyWhatIsAllowed(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		clean, err := Clean(sample(order))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(clean, []byte("SECRET")) {
			t.Errorf("%v: private data is still there", order)
		}
		if !bytes.Contains(clean, []byte("Some camera 1")) || Orientation(clean) != 1 {
			t.Errorf("%v: the model is gone, or the orientation is %d", order, Orientation(clean))
		}
		tree, first, err := open(clean)
		if err != nil {
			t.Fatal(err)
		}
		main, err := tree.directory(first, func(tag uint16) bool { return tag == tagExifIFD })
		if err != nil || len(main) != 1 {
			t.Fatalf("no Exif directory: %v", err)
		}
		detail, err := tree.directory(order.Uint32(main[0].value), func(uint16) bool { return true })
		if err != nil || len(detail) != 1 || order.Uint16(detail[0].value) != 400 {
			t.Errorf("%v: details are %v, %v", order, detail, err)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add(sample(binary.LittleEndian))
	f.Add(sample(binary.BigEndian))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o := Orientation(data); o < 1 || o > 8 {
			t.Fatalf("orientation %d", o)
		}
		clean, err := Clean(data)
		if err != nil {
			return
		}
		again, err := Clean(clean)
		if err != nil || !bytes.Equal(clean, again) {
			t.Fatalf("cleaning twice changes the data or fails: %v", err)
		}
	})
}
