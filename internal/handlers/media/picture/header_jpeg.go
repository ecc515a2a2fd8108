package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/exif"
)

// jpegFrame is what the frame header of a JPEG says (ITU-T T.81, B.2.2).
type jpegFrame struct {
	marker     byte // SOF0 … SOF15
	components int
	sampled    bool // components differ in sampling
}

func (f jpegFrame) baseline() bool { return f.marker == 0xc0 || f.marker == 0xc1 }

// readJPEG walks the segments up to the first scan.
func (h *Header) readJPEG(data []byte) error {
	var profile [][]byte
	for at := 2; ; {
		marker, body, next, err := jpegSegment(data, at)
		if err != nil {
			return err
		}
		at = next
		switch {
		case marker == 0xda:
			return h.finishJPEG(data[at:], profile)
		case marker == 0xe1 && h.EXIF == nil && bytes.HasPrefix(body, []byte("Exif\x00\x00")):
			h.EXIF = body[6:]
			h.Orientation = exif.Orientation(h.EXIF)
		case marker == 0xe2 && len(body) > 14 && bytes.HasPrefix(body, []byte("ICC_PROFILE\x00")):
			profile = append(profile, body[14:])
		case startsFrame(marker):
			if err := h.readFrame(marker, body); err != nil {
				return err
			}
		}
	}
}

// startsFrame says whether a marker is one of SOF0 to SOF15, between which DHT,
// JPG and DAC have theirs.
func startsFrame(marker byte) bool {
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc
}

// jpegSegment finds the marker segment at or after at. Standalone markers and
// fill bytes are passed over.
func jpegSegment(data []byte, at int) (marker byte, body []byte, next int, err error) {
	for at+4 <= len(data) {
		if data[at] != 0xff {
			at++ // garbage between segments, which decoders forgive
			continue
		}
		marker = data[at+1]
		if marker == 0xff {
			at++
			continue
		}
		if marker == 0 || marker == 1 || marker >= 0xd0 && marker <= 0xd9 {
			at += 2
			continue
		}
		length := int(binary.BigEndian.Uint16(data[at+2:]))
		if length < 2 || at+2+length > len(data) {
			break
		}
		return marker, data[at+4 : at+2+length], at + 2 + length, nil
	}
	return 0, nil, 0, fmt.Errorf("%w: the JPEG ends before its first scan", ErrCorrupt)
}

func (h *Header) readFrame(marker byte, body []byte) error {
	if h.jpeg.marker != 0 {
		return fmt.Errorf("%w: the JPEG has two frames", ErrCorrupt)
	}
	if len(body) < 6 || len(body) < 6+3*int(body[5]) {
		return fmt.Errorf("%w: the JPEG's frame header is short", ErrCorrupt)
	}
	if body[0] != 8 || marker > 0xc2 {
		return fmt.Errorf("%w: a JPEG with %d bits a sample and coding SOF%d (only 8-bit Huffman-coded ones are read)",
			ErrUnsupported, body[0], marker-0xc0)
	}
	h.jpeg.marker, h.jpeg.components = marker, int(body[5])
	h.StoredHeight, h.StoredWidth = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
	for c := range h.jpeg.components {
		h.jpeg.sampled = h.jpeg.sampled || body[6+3*c+1] != body[7]
	}
	return nil
}

func (h *Header) finishJPEG(scans []byte, profile [][]byte) error {
	if h.jpeg.marker == 0 {
		return fmt.Errorf("%w: the JPEG has no frame header", ErrCorrupt)
	}
	h.ICC = bytes.Join(profile, nil)
	h.scans = 1 + bytes.Count(scans, []byte{0xff, 0xda})
	h.Partial = !bytes.Contains(scans, []byte{0xff, 0xd9})
	h.Streamed = h.jpeg.components != 4
	return nil
}
