package config

// Media says which copies of a picture are made, and what a picture may be.
type Media struct {
	Sizes     []string `koanf:"sizes"` // name:WxH:crop|fit; none named: the CMS's own, else the specification's
	Name      string   `koanf:"name"`  // template of file names; "" follows the profile
	Quality   int      `koanf:"quality"`
	WebP      bool     `koanf:"webp"`
	AVIF      bool     `koanf:"avif"`
	Enlarge   bool     `koanf:"enlarge"`
	KeepEXIF  bool     `koanf:"keep_exif"`
	Blurhash  bool     `koanf:"blurhash"`
	Watermark string   `koanf:"watermark"`
	MaxPixels int      `koanf:"max_pixels"`
	MaxFile   Size     `koanf:"max_file"`
	MaxFrames int      `koanf:"max_frames"`
	Budget    Size     `koanf:"budget"`
	Parallel  int      `koanf:"parallel"`
}

func defaultMedia() Media {
	return Media{Quality: 85, Blurhash: true, MaxPixels: 100_000_000, MaxFile: 64 << 20, MaxFrames: 500, Budget: 256 << 20, Parallel: 2}
}

func (m Media) check(r *report) {
	r.between("media/quality", m.Quality, 1, 100)
	r.between("media/max_pixels", m.MaxPixels, 1_000_000, 1_000_000_000)
	r.between("media/max_frames", m.MaxFrames, 1, 10_000)
	r.between("media/parallel", m.Parallel, 1, 64)
	if m.MaxFile < 1<<20 {
		r.add("media/max_file", "%s is too small: at least 1MiB", m.MaxFile)
	}
	if m.Budget < 16<<20 {
		r.add("media/budget", "%s is too small: at least 16MiB", m.Budget)
	}
}
