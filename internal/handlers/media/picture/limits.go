package picture

import "fmt"

// Limits bound what one picture may cost. They are checked against the header,
// before anything is decoded.
type Limits struct {
	FileBytes int64 // of the file
	// StreamedPixels bounds what is decoded in small memory (JPEG at reduced
	// size, PNG row by row), WholePixels what has to be decoded whole.
	StreamedPixels, WholePixels int64
	Side                        int // of width and height each
	// Frames and AnimatedPixels (frames × area) bound animations.
	Frames         int
	AnimatedPixels int64
	// ScannedPixels bounds a JPEG's scans × area: a few bytes can make another
	// pass over the whole picture.
	ScannedPixels int64
	// OutputPixels bounds one rendition.
	OutputPixels int64
}

// DefaultLimits are 64 MiB, 100 and 50 megapixels, 65,500 pixels a side, 500
// frames with 200 megapixels in sum, 2,000 megapixels over all scans of a JPEG,
// and 25 megapixels a rendition.
func DefaultLimits() Limits {
	return Limits{
		FileBytes:      64 << 20,
		StreamedPixels: 100e6, WholePixels: 50e6, Side: 65500,
		ScannedPixels: 2000e6,
		Frames:        500, AnimatedPixels: 200e6,
		OutputPixels: 25e6,
	}
}

// Check says whether a picture with this header may be decoded.
func (l Limits) Check(h Header) error {
	largest := l.WholePixels
	if h.Streamed {
		largest = l.StreamedPixels
	}
	switch {
	case h.StoredWidth > l.Side || h.StoredHeight > l.Side:
		return fmt.Errorf("%w: %d×%d has a side of more than %d pixels", ErrTooLarge, h.StoredWidth, h.StoredHeight,
			l.Side)
	case h.Pixels() > largest:
		return fmt.Errorf("%w: %d×%d is more than %d megapixels", ErrTooLarge, h.StoredWidth, h.StoredHeight,
			largest/1e6)
	case h.scans > 1 && int64(h.scans)*h.Pixels() > l.ScannedPixels:
		return fmt.Errorf("%w: %d scans of %d×%d are more than %d megapixels in sum", ErrTooLarge, h.scans,
			h.StoredWidth, h.StoredHeight, l.ScannedPixels/1e6)
	case h.Frames > l.Frames:
		return fmt.Errorf("%w: it has %d frames, more than %d", ErrTooLarge, h.Frames, l.Frames)
	case h.Frames > 1 && h.Pixels()*int64(h.Frames) > l.AnimatedPixels:
		return fmt.Errorf("%w: %d frames of %d×%d are more than %d megapixels in sum", ErrTooLarge, h.Frames,
			h.StoredWidth, h.StoredHeight, l.AnimatedPixels/1e6)
	}
	return nil
}
