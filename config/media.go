package config

import (
	"fmt"
	"strconv"
	"strings"
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
	Memory      Size     `koanf:"memory"`
	AtOnce      int      `koanf:"at_once"`
	MaxFile     Size     `koanf:"max_file"`
}

func defaultMedia() Media { return Media{Memory: 384 << 20, AtOnce: 2, MaxFile: 64 << 20} }

func (m Media) check(r *report) {
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
	r.between("media/at_once", m.AtOnce, 1, 64)
	if m.MaxFile < 1<<20 {
		r.add("media/max_file", "%s is too small: at least 1MiB", m.MaxFile)
	}
	if m.Memory < 16<<20 {
		r.add("media/memory", "%s is too small: at least 16MiB", m.Memory)
	}
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
