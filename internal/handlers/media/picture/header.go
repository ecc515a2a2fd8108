package picture

import (
	"bytes"
	"errors"
	"fmt"
)

// The ways in which a file is refused. A caller that cannot fix the file need
// not try again for the first two.
var (
	// ErrUnsupported says that the bytes are no format that is read here.
	ErrUnsupported = errors.New("the file is no picture of a kind that is read here (JPEG, PNG, GIF, WebP, AVIF)")
	// ErrTooLarge says that a limit was passed.
	ErrTooLarge = errors.New("the picture is larger than is allowed")
	// ErrCorrupt says that the bytes do not keep to their format.
	ErrCorrupt = errors.New("the picture is damaged")
	// ErrUnbounded says that only another decoder without bounds may read
	// the picture, and that Maker.Bounded forbids that one.
	ErrUnbounded = errors.New("the picture needs a decoder that is not bounded by itself")
)

// Format is a file format.
type Format string

// The formats.
const (
	JPEG Format = "jpeg"
	PNG  Format = "png"
	GIF  Format = "gif"
	WebP Format = "webp"
	AVIF Format = "avif"
)

// MIME is the media type.
func (f Format) MIME() string { return "image/" + string(f) }

// Extension is the usual extension of file names, without a dot.
func (f Format) Extension() string {
	if f == JPEG {
		return "jpg"
	}
	return string(f)
}

// Header is what a file says of itself before any pixel is decoded.
type Header struct {
	Format Format
	// StoredWidth and StoredHeight are as in the file, before orientation.
	StoredWidth, StoredHeight int
	// Orientation is 1 to 8 as EXIF numbers them.
	Orientation int
	// Frames is 1 for a still picture. An APNG counts as its still picture.
	Frames int
	// Streamed says that the picture can be decoded in small memory: a JPEG at
	// reduced size, a PNG row by row.
	Streamed bool
	// Partial says that the file ends early; what is there is shown.
	Partial bool
	// EXIF (from the TIFF header on) and ICC as in the file; nil without.
	EXIF, ICC []byte

	jpeg jpegFrame
	webp webpLayout
	// scans of a JPEG: each costs a pass over all blocks.
	scans      int
	interlaced bool
}

// Size is the width and height as a viewer shows the picture.
func (h Header) Size() (width, height int) {
	if h.Orientation >= 5 {
		return h.StoredHeight, h.StoredWidth
	}
	return h.StoredWidth, h.StoredHeight
}

// Unbounded says that the picture is decoded whole by a library whose time and
// memory are known from the header only as far as it keeps to it.
func (h Header) Unbounded() bool { return !h.Streamed }

// Pixels counts one frame.
func (h Header) Pixels() int64 { return int64(h.StoredWidth) * int64(h.StoredHeight) }

// Inspect reads the header of a file that is wholly in memory. It decodes no
// pixel, and its memory does not depend on what the header claims.
func Inspect(data []byte) (Header, error) {
	h := Header{Orientation: 1, Frames: 1}
	var err error
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		h.Format = JPEG
		err = h.readJPEG(data)
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		h.Format = PNG
		err = h.readPNG(data)
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		h.Format = GIF
		err = h.readGIF(data)
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		h.Format = WebP
		err = h.readWebP(data)
	case isAVIF(data):
		h.Format = AVIF
		err = h.readAVIF(data)
	default:
		return Header{}, ErrUnsupported
	}
	if err != nil {
		return Header{}, err
	}
	if h.StoredWidth <= 0 || h.StoredHeight <= 0 {
		return Header{}, fmt.Errorf("%w: its size is %d×%d", ErrCorrupt, h.StoredWidth, h.StoredHeight)
	}
	return h, nil
}
