package media

import (
	"context"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// Size is one thumbnail that every picture gets.
type Size struct {
	Name string
	// Width and Height of the box; a side of 0 keeps the proportions.
	Width, Height int
	// Fit keeps the whole picture inside of the box; otherwise the box is
	// filled and what stands over is cut.
	Fit bool
	// Enlarge lets small pictures grow to the size.
	Enlarge bool
}

// Options say what is made. The zero value follows the CMS.
type Options struct {
	// Sizes replace those of the CMS, or the specification's where no CMS is
	// detected: small 150×150 and medium 300×300 cut, large 800×800 fitted.
	Sizes []Size
	// Widths are further renditions in full proportions ("responsive images"),
	// made where the original is wider.
	Widths []int
	// Name is the template of file names: {name}, {size}, {w}, {h}, {ext}.
	// Default {name}-{w}x{h}.{ext} with a CMS, {name}-{size}.{ext} without, where
	// the size "small" is written "thumb".
	Name string
	// Position of cuts where the CMS's settings say nothing; default center. "attention"
	// wins over them: it keeps what people look at first.
	Position string
	// Quality of JPEG, WebP and AVIF, 1–100; 0 is the CMS's media_image_quality,
	// else 75.
	Quality int
	// Copies are further formats beside each thumbnail: "webp", "avif". A copy's
	// name is the thumbnail's with ".webp" or ".avif" after it.
	Copies []string
	// Optimize spends time on smaller files.
	Optimize bool
	// KeepEXIF and KeepICC carry metadata into JPEG thumbnails; places never.
	KeepEXIF, KeepICC bool
	// Placeholder leaves a BlurHash and a tiny JPEG (data URI) in the row.
	Placeholder bool
	// Animations says what becomes of animated pictures; "" is picture.Resize.
	Animations picture.Animations
	// Watermark stamps originals, in place, before thumbnails are made of them;
	// nil stamps none. It rests while the CMS stamps uploads itself (its setting
	// media_watermark_enabled), as two stamps would lie on each other.
	Watermark *Watermark
	// Limits per picture; the zero value means picture.DefaultLimits.
	Limits picture.Limits
	// Memory in bytes that all pictures of the process may take together;
	// default 384 MiB. A larger picture runs alone.
	Memory int64
	// AtOnce is how many pictures are decoded at the same time; default 2.
	AtOnce int
	// Apart does what picture.Maker refuses when it is Bounded; nil does that in
	// this process too.
	Apart Renderer
}

// Watermark is a stamp for originals. Zero fields follow the CMS's settings
// media_watermark_*, and its defaults: 10 % of the width, opacity 70, 10 pixels
// from the bottom right.
type Watermark struct {
	// Source is the URL of the mark under the uploads ("general/mark.png").
	Source           string
	Percent, Opacity int
	Position         string
	X, Y             int
	// Folders are the ids of those whose files are stamped; none means all.
	Folders []string
}

// Renderer is picture.Maker somewhere else: in another process.
type Renderer interface {
	Stamp(ctx context.Context, m picture.Generator, data []byte, w picture.Watermark) ([]byte, error)
	Render(ctx context.Context, m picture.Generator, data []byte, specs []picture.Spec) (picture.Result, error)
}

const (
	cmsName    = "{name}-{w}x{h}.{ext}"
	plainName  = "{name}-{size}.{ext}"
	defaultMem = 384 << 20
)

// plainSizes are the specification's.
func plainSizes() []Size {
	return []Size{
		{Name: "small", Width: 150, Height: 150},
		{Name: "medium", Width: 300, Height: 300},
		{Name: "large", Width: 800, Height: 800, Fit: true},
	}
}

func (o Options) withDefaults() Options {
	if o.Limits == (picture.Limits{}) {
		o.Limits = picture.DefaultLimits()
	}
	if o.Memory <= 0 {
		o.Memory = defaultMem
	}
	if o.AtOnce <= 0 {
		o.AtOnce = 2
	}
	return o
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	if err := o.validateSizes(); err != nil {
		return err
	}
	for _, c := range o.Copies {
		if c != string(picture.WebP) && c != string(picture.AVIF) {
			return fmt.Errorf("media copies in %q: known are webp and avif", c)
		}
	}
	if o.Name != "" && (!strings.Contains(o.Name, "{name}") || strings.ContainsAny(o.Name, "/\\\x00")) {
		return fmt.Errorf("media name template %q: it needs {name} and may have no slash", o.Name)
	}
	switch o.Animations {
	case "", picture.Resize, picture.Copy, picture.Still:
	default:
		return fmt.Errorf("media animations %q: known are resize, copy and still", o.Animations)
	}
	if o.Quality < 0 || o.Quality > 100 {
		return fmt.Errorf("media quality %d: it is 1 to 100", o.Quality)
	}
	return nil
}

func (o Options) validateSizes() error {
	for _, s := range o.Sizes {
		if s.Width < 0 || s.Height < 0 || s.Width == 0 && s.Height == 0 || max(s.Width, s.Height) > maxSide {
			return fmt.Errorf("media size %q of %d×%d: sides are 1 to %d pixels, one of them may be 0", s.Name,
				s.Width, s.Height, maxSide)
		}
	}
	for _, w := range o.Widths {
		if w < 1 || w > maxSide {
			return fmt.Errorf("media width %d: widths are 1 to %d pixels", w, maxSide)
		}
	}
	return nil
}

// maxSide is WebP's longest.
const maxSide = 16383
