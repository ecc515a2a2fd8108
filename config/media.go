package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Media says which thumbnails a picture gets, and what a picture may be.
type Media struct {
	Sizes       []string `koanf:"sizes"`
	Widths      []int    `koanf:"widths"`
	Name        string   `koanf:"name"`
	Quality     int      `koanf:"quality"`
	Copies      []string `koanf:"copies"`
	Optimize    bool     `koanf:"optimize"`
	KeepEXIF    bool     `koanf:"keep_exif"`
	KeepICC     bool     `koanf:"keep_icc"`
	Placeholder bool     `koanf:"placeholder"`
	Position    string   `koanf:"position"`
	Animations  string   `koanf:"animations"`
	// Watermark stamps originals.
	Watermark Watermark `koanf:"watermark"`
	Memory    Size      `koanf:"memory"`
	AtOnce    int       `koanf:"at_once"`
	MaxFile   Size      `koanf:"max_file"`
	// Isolate decodes what is not bounded by itself in a separate process.
	Isolate       bool          `koanf:"isolate"`
	IsolateMemory Size          `koanf:"isolate_memory"`
	IsolateTime   time.Duration `koanf:"isolate_time"`
	// AllowPrivate are where a bucket may be that only the CMS's settings name.
	AllowPrivate []string `koanf:"allow_private"`
}

// Networks are AllowPrivate as values; the configuration was checked.
func (m Media) Networks() []netip.Prefix { return networks(m.AllowPrivate) }

// Watermark is the stamp for originals; zero fields follow the CMS's own
// settings media_watermark_*.
type Watermark struct {
	Enabled  bool     `koanf:"enabled"`
	Source   string   `koanf:"source"`
	Percent  int      `koanf:"percent"`
	Opacity  int      `koanf:"opacity"`
	Position string   `koanf:"position"`
	X        int      `koanf:"x"`
	Y        int      `koanf:"y"`
	Folders  []string `koanf:"folders"`
}

func defaultMedia() Media {
	return Media{Position: "center", Animations: "resize", Memory: 384 << 20, AtOnce: 2, MaxFile: 64 << 20,
		Isolate: true, IsolateMemory: 768 << 20, IsolateTime: time.Minute}
}

// positions are the places in a picture that settings name.
func positions() []string {
	return []string{"center", "top", "bottom", "left", "right", "top-left", "top-right", "bottom-left", "bottom-right"}
}

func (m Media) check(r *report) {
	r.networks("media/allow_private", m.AllowPrivate)
	for _, text := range m.Sizes {
		if _, err := ParseMediaSize(text); err != nil {
			r.add("media/sizes", "%v", err)
		}
	}
	for _, w := range m.Widths {
		r.between("media/widths", w, 1, 16383)
	}
	for _, c := range m.Copies {
		r.oneOf("media/copies", c, "webp", "avif")
	}
	r.between("media/quality", m.Quality, 0, 100)
	r.oneOf("media/position", m.Position, append(positions(), "attention")...)
	r.oneOf("media/animations", m.Animations, "resize", "copy", "still")
	m.Watermark.check(r)
	r.between("media/at_once", m.AtOnce, 1, 64)
	if m.IsolateMemory < 128<<20 {
		r.add("media/apart_memory", "%s is too small: at least 128MiB", m.IsolateMemory)
	}
	r.atLeastFor("media/apart_time", m.IsolateTime, time.Second)
	if m.MaxFile < 1<<20 {
		r.add("media/max_file", "%s is too small: at least 1MiB", m.MaxFile)
	}
	if m.Memory < 16<<20 {
		r.add("media/memory", "%s is too small: at least 16MiB", m.Memory)
	}
}

func (w Watermark) check(r *report) {
	if w.Position != "" {
		r.oneOf("media/watermark/position", w.Position, positions()...)
	}
	r.between("media/watermark/percent", w.Percent, 0, 100)
	r.between("media/watermark/opacity", w.Opacity, 0, 100)
	r.atLeast("media/watermark/x", w.X, 0)
	r.atLeast("media/watermark/y", w.Y, 0)
}

// MediaSize is one size of thumbnails.
type MediaSize struct {
	Name          string
	Width, Height int
	Fit           bool
}

// ParseMediaSize reads name:WxH and name:WxH:fit.
func ParseMediaSize(text string) (MediaSize, error) {
	fault := fmt.Errorf("%q is no size: write name:300x200 (cut) or name:800x800:fit", text)
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || len(parts) == 3 && parts[2] != "fit" {
		return MediaSize{}, fault
	}
	w, h, ok := strings.Cut(parts[1], "x")
	width, err := strconv.Atoi(w)
	height, err2 := strconv.Atoi(h)
	if !ok || err != nil || err2 != nil || width < 0 || height < 0 || width+height == 0 {
		return MediaSize{}, fault
	}
	return MediaSize{Name: parts[0], Width: width, Height: height, Fit: len(parts) == 3}, nil
}
