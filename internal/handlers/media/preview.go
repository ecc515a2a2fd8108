package media

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
)

// preview leaves a BlurHash and a tiny JPEG of img in the record; nil is none.
func (r *Record) preview(img image.Image) error {
	if img == nil {
		return nil
	}
	// On white, as JPEG knows no transparency.
	flat := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Rect, img, img.Bounds().Min, draw.Over)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, flat, &jpeg.Options{Quality: 40}); err != nil {
		return fmt.Errorf("encoding the placeholder: %w", err)
	}
	r.BlurHash, r.Placeholder = blurHash(flat, 4, 3), "data:image/jpeg;base64,"+
		base64.StdEncoding.EncodeToString(b.Bytes())
	return nil
}
