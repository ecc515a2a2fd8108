package picture

import (
	"encoding/binary"
	"fmt"
)

// readGIF walks the blocks and counts the frames (GIF89a specification, 17 ff.).
func (h *Header) readGIF(data []byte) error {
	if len(data) < 13 {
		return fmt.Errorf("%w: the GIF ends in its header", ErrCorrupt)
	}
	h.StoredWidth, h.StoredHeight = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
	at := 13 + colourTable(data[10])
	h.Frames = 0
	for at < len(data) {
		switch data[at] {
		case 0x21: // extension: label, then sub-blocks
			at = skipSubBlocks(data, at+2)
		case 0x2c: // image descriptor, colour table, code size, sub-blocks
			if at+10 > len(data) {
				at = len(data)
				break
			}
			h.Frames++
			at = skipSubBlocks(data, at+10+colourTable(data[at+9])+1)
		case 0x3b:
			at = len(data) + 1
		default:
			at = len(data)
		}
	}
	if h.Frames == 0 {
		return fmt.Errorf("%w: the GIF has no frame", ErrCorrupt)
	}
	h.Partial = at == len(data)
	return nil
}

// colourTable is the length in bytes that a packed field announces.
func colourTable(packed byte) int {
	if packed&0x80 == 0 {
		return 0
	}
	return 3 << (packed&7 + 1)
}

func skipSubBlocks(data []byte, at int) int {
	for at < len(data) {
		n := int(data[at])
		at += 1 + n
		if n == 0 {
			return at
		}
	}
	return len(data)
}
