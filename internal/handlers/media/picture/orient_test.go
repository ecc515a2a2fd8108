package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"testing"

	"github.com/disintegration/imaging"
	"github.com/gen2brain/jpegn"
	"github.com/gen2brain/webp"
)

// exifOf is EXIF data with nothing but an orientation.
func exifOf(o int) []byte {
	return []byte{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, byte(o), 0, 0, 0, 0, 0, 0, 0}
}

// turned is img as a camera stores it that writes orientation o.
func turned(img image.Image, o int) image.Image {
	switch o {
	case 2:
		return imaging.FlipH(img)
	case 3:
		return imaging.Rotate180(img)
	case 4:
		return imaging.FlipV(img)
	case 5:
		return imaging.Transpose(img)
	case 6:
		return imaging.Rotate90(img)
	case 7:
		return imaging.Transverse(img)
	case 8:
		return imaging.Rotate270(img)
	}
	return img
}

// All eight orientations × all ways through the engine give the picture that
// orientation 1 gives, cut at the same place.
func TestOrientationIsAppliedOnEachPath(t *testing.T) {
	upright := photo(310, 206)
	segment := func(o int) []byte { return append([]byte("Exif\x00\x00"), exifOf(o)...) }
	asJPEG := func(options jpegn.EncodeOptions) func(image.Image, int) []byte {
		return func(img image.Image, o int) []byte {
			options.Quality, options.Exif = 95, segment(o)
			return encodeJPEG(t, img, &options)
		}
	}
	paths := map[string]func(image.Image, int) []byte{
		"jpeg":             asJPEG(jpegn.EncodeOptions{}),
		"jpeg 4:4:4":       asJPEG(jpegn.EncodeOptions{Subsampling: jpegn.Subsample444}),
		"jpeg 4:2:2":       asJPEG(jpegn.EncodeOptions{Subsampling: jpegn.Subsample422}),
		"grey jpeg":        asJPEG(jpegn.EncodeOptions{Subsampling: jpegn.SubsampleGray}),
		"progressive jpeg": asJPEG(jpegn.EncodeOptions{Progressive: true}),
		"png":              func(img image.Image, o int) []byte { return withChunk(encodePNG(t, img), exifOf(o)) },
		"webp": func(img image.Image, o int) []byte {
			return withEXIF(encodeWebP(t, img, false), exifOf(o))
		},
		"lossless webp": func(img image.Image, o int) []byte {
			return withEXIF(encodeWebP(t, img, true), exifOf(o))
		},
	}
	specs := []Spec{{Width: 50, Height: 50, Position: "top-left"}, {Width: 31, Height: 80, Position: "right"},
		{Width: 151, Height: 151, Mode: Fit}}
	for i := range specs {
		specs[i].Formats = []Format{PNG}
	}
	for name, encode := range paths {
		want := render(t, maker(), encode(upright, 1), specs...).Renditions
		for o := 2; o <= 8; o++ {
			t.Run(fmt.Sprintf("%s/%d", name, o), func(t *testing.T) {
				got := render(t, maker(), encode(turned(upright, o), o), specs...)
				if w, h := got.Header.Size(); w != 310 || h != 206 {
					t.Errorf("its size is %d×%d", w, h)
				}
				for i, r := range got.Renditions {
					if db := psnr(t, decoded(t, r.Data), decoded(t, want[i].Data)); db < 33 {
						t.Errorf("spec %d: %.1f dB", i, db)
					}
				}
			})
		}
	}
}

func encodePNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodeWebP(t testing.TB, img image.Image, lossless bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := webp.Encode(&b, img, webp.Options{Quality: 95, Lossless: lossless, Method: 1}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withChunk puts an eXIf chunk behind a PNG's header.
func withChunk(data, exif []byte) []byte {
	c := append(binary.BigEndian.AppendUint32(nil, uint32(len(exif))), "eXIf"...)
	c = append(c, exif...)
	c = binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
	return append(append(bytes.Clone(data[:33]), c...), data[33:]...)
}

// withEXIF makes a simple WebP an extended one with an EXIF chunk.
func withEXIF(data, exif []byte) []byte {
	h, err := Inspect(data)
	if err != nil {
		panic(err)
	}
	body := chunk(nil, "VP8X", extendedHeader(0x08, h.StoredWidth, h.StoredHeight))
	return riff(chunk(append(body, data[12:]...), "EXIF", exif))
}
