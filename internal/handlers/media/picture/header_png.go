package picture

import (
	"encoding/binary"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/exif"
)

// readPNG reads IHDR and looks for eXIf before the pixels (PNG, third edition, 11).
func (h *Header) readPNG(data []byte) error {
	if len(data) < 33 || string(data[12:16]) != "IHDR" || binary.BigEndian.Uint32(data[8:]) != 13 {
		return fmt.Errorf("%w: the PNG does not begin with IHDR", ErrCorrupt)
	}
	width, height := binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:])
	if width > 1<<31-1 || height > 1<<31-1 {
		return fmt.Errorf("%w: the PNG claims %d×%d", ErrCorrupt, width, height)
	}
	h.StoredWidth, h.StoredHeight = int(width), int(height)
	h.interlaced = data[28] != 0
	h.Streamed = !h.interlaced
	for at := 33; at+12 <= len(data); {
		length := int64(binary.BigEndian.Uint32(data[at:]))
		kind := string(data[at+4 : at+8])
		if kind == "IEND" || int64(at)+12+length > int64(len(data)) {
			break
		}
		if kind == "eXIf" {
			h.EXIF = data[at+8 : at+8+int(length)]
			h.Orientation = exif.Orientation(h.EXIF)
		}
		at += 12 + int(length)
	}
	return nil
}
