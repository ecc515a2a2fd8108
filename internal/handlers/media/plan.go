package media

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// positionOf is where cuts are: Attention wins over the CMS, whose own code knows it not.
func positionOf(settings cms.Settings, o Options) picture.Position {
	if o.Position == string(picture.Attention) {
		return picture.Attention
	}
	return picture.Position(settings.String("media_thumbnail_crop_position", o.Position))
}

// plan is what the CMS's settings and ours ask for, for all pictures alike.
type plan struct {
	place    cms.MediaPlace
	sizes    []Size
	widths   []int
	name     string
	position picture.Position
	copies   []picture.Format
	encoding picture.Encoding
	preview  bool
	// animations is never "".
	animations picture.Animations
	// watermark is nil where nothing is stamped.
	watermark *Watermark
}

// newPlan joins the site's settings with the options.
func newPlan(site *cms.Site, settings cms.Settings, o Options) (plan, error) {
	place, err := site.MediaPlace(settings)
	if err != nil {
		return plan{}, err
	}
	p := plan{
		place: place, sizes: o.Sizes, widths: o.Widths, name: o.Name,
		position: positionOf(settings, o),
		encoding: picture.Encoding{Quality: o.Quality, Optimize: o.Optimize, KeepEXIF: o.KeepEXIF, KeepICC: o.KeepICC},
		preview:  o.Placeholder, animations: cmp.Or(o.Animations, picture.Resize),
	}
	if p.encoding.Quality == 0 {
		p.encoding.Quality = settings.Int("media_image_quality", 0)
	}
	p.watermark = newWatermark(o.Watermark, settings)
	for _, c := range o.Copies {
		p.copies = append(p.copies, picture.Format(c))
	}
	detected := isCMS(settings)
	if p.name == "" {
		p.name = plainName
		if detected {
			p.name = cmsName
		}
	}
	if p.sizes == nil {
		if p.sizes, err = defaultSizes(site, settings, detected); err != nil {
			return plan{}, err
		}
	}
	return p, nil
}

// isCMS says whether the settings are a Botble's: each version writes one of
// these rows when it is installed.
func isCMS(settings cms.Settings) bool {
	for _, key := range []string{"activated_plugins", "theme", "media_random_hash"} {
		if _, there := settings[key]; there {
			return true
		}
	}
	return false
}

func defaultSizes(site *cms.Site, settings cms.Settings, detected bool) ([]Size, error) {
	if !detected {
		return plainSizes(), nil
	}
	known, err := site.MediaSizes(settings)
	if err != nil {
		return nil, err
	}
	sizes := []Size{}
	for _, s := range known {
		sizes = append(sizes, Size{Name: s.Name, Width: s.Width, Height: s.Height, Enlarge: true})
	}
	return sizes, nil
}

// digest names everything that changes the pixels or names of renditions.
func (p plan) digest() string {
	data, err := json.Marshal(struct {
		Version  int
		Sizes    []Size
		Widths   []int
		Name     string
		Position picture.Position
		Copies   []picture.Format
		Encoding picture.Encoding
		Preview  bool
		Mark     *Watermark `json:",omitempty"`
		// The usual way is not named, as records from before it had a name have
		// none.
		Animations picture.Animations `json:",omitempty"`
	}{1, p.sizes, p.widths, p.name, p.position, p.copies, p.encoding, p.preview, p.watermark, unusual(p.animations)})
	if err != nil {
		panic(err) // plain values always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func unusual(a picture.Animations) picture.Animations {
	if a == picture.Resize {
		return ""
	}
	return a
}

// wanted is one file to be made.
type wanted struct {
	size string
	url  string
	spec picture.Spec
	// format is "" for the source's own; else of is the size whose copy this is.
	format picture.Format
	of     string
}

// renditions lists the files that a picture at url gets. width is that of the
// upright original: responsive widths are not made larger than it.
func (p plan) renditions(url string, width int, focus *picture.Point) []wanted {
	var list []wanted
	add := func(s Size) {
		spec := picture.Spec{Width: s.Width, Height: s.Height, Position: p.position, Focus: focus, Enlarge: s.Enlarge}
		if s.Fit {
			spec.Mode = picture.Fit
		}
		name := p.fileName(url, s)
		list = append(list, wanted{size: s.Name, url: name, spec: spec})
		for _, f := range p.copies {
			list = append(list, wanted{size: s.Name + "." + string(f), url: name + "." + f.Extension(), spec: spec,
				format: f, of: s.Name})
		}
	}
	for _, s := range p.sizes {
		add(s)
	}
	for _, w := range p.widths {
		if w < width {
			add(Size{Name: "w" + strconv.Itoa(w), Width: w})
		}
	}
	return list
}

// fileName fills the template; "auto" stands for a side that is not fixed, as
// the CMS writes it.
func (p plan) fileName(url string, s Size) string {
	dir, file := path.Split(url)
	ext := path.Ext(file)
	size := s.Name
	if size == "small" && p.name == plainName {
		size = "thumb"
	}
	name := strings.NewReplacer("{name}", strings.TrimSuffix(file, ext), "{size}", size, "{w}", sideName(s.Width),
		"{h}", sideName(s.Height), "{ext}", strings.TrimPrefix(ext, ".")).Replace(p.name)
	return dir + strings.TrimSuffix(name, ".")
}

func sideName(n int) string {
	if n == 0 {
		return "auto"
	}
	return strconv.Itoa(n)
}
