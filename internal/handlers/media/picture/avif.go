package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"github.com/gen2brain/avif"
)

// decodeAVIF decodes a picture, not yet turned. The library goes by what it reads itself,
// so that is held against the header by which the limits were checked. Where it could
// decode nothing it returns what its memory held, and a length of time that it has not
// written: a still picture is shown for one second.
func decodeAVIF(data []byte, h Header) (image.Image, error) {
	config, err := avif.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if config.Width != h.StoredWidth || config.Height != h.StoredHeight {
		return nil, fmt.Errorf("its pictures have %d×%d pixels, its header says %d×%d", config.Width, config.Height,
			h.StoredWidth, h.StoredHeight)
	}
	all, err := avif.DecodeAll(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if len(all.Image) != 1 || len(all.Delay) != 1 || all.Delay[0] != 1 { //nolint:gosec // exactly what it writes
		return nil, errors.New("what it holds cannot be decoded")
	}
	return all.Image[0], nil
}
