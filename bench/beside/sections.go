package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sitemaps: a million posts, processor time and memory; then the writer alone.
func sitemaps(ctx context.Context, peers string) (string, error) {
	env := []string{}
	if peers != "" {
		env = append(env, "CMSJOBS_PEER="+peers)
	}
	// The writers come first: ext4 looks at each inode that was freed in the last minutes
	// before it takes one, and the others remove many files.
	alone, err := benchmark(ctx, "Writer", "1x", "./internal/handlers/sitemap", env...)
	if err != nil {
		return "", err
	}
	all, err := benchmark(ctx, "Million", "1x", "./internal/handlers/sitemap", env...)
	if err != nil {
		return "", err
	}
	t := newTable("files of", "cmsjobs: CPU s", "peak MB", "npm sitemap: CPU s", "peak MB", "CPU ratio", "memory ratio")
	for _, size := range []string{"1000", "50000"} {
		ours, theirs := all["cmsjobs/"+size], all["npm-sitemap/"+size]
		t.row(size, number(ours["cpu-s/op"]), number(ours["peak-MB"]), number(theirs["cpu-s/op"]),
			number(theirs["peak-MB"]),
			ratio(theirs["cpu-s/op"], ours["cpu-s/op"]), ratio(theirs["peak-MB"], ours["peak-MB"]))
	}
	return fmt.Sprintf("%s\nNothing changed since the last run: %.2f s by the clock.\n\n"+
		"The writer alone: a million addresses made in memory, into files; "+
		"ours are fsynced, the others' are not.\n\n%s",
		t, all["unchanged"]["ns/op"]/1e9, writers(alone)), nil
}

// writers sets the writers' processor time side by side.
func writers(all map[string]figures) string {
	t := newTable("files of", "cmsjobs: CPU s", "snabb/sitemap", "snabb, fsynced", "npm sitemap", "CPU ratio: snabb",
		"snabb, fsynced", "npm")
	for _, size := range []string{"1000", "50000"} {
		ours, snabb, npm := all["cmsjobs/"+size]["cpu-s/op"], all["snabb/"+size]["cpu-s/op"],
			all["npm-sitemap/"+size]["cpu-s/op"]
		durable := all["snabb-fsynced/"+size]["cpu-s/op"]
		t.row(size, number(ours), number(snabb), number(durable), number(npm), ratio(snabb, ours), ratio(durable, ours),
			ratio(npm, ours))
	}
	return t.String()
}

// dumps: time by the clock, and of processors without the server's.
func dumps(ctx context.Context, _ string) (string, error) {
	posts := "30000"
	all, err := benchmark(ctx, "BesidePeers", "3x", "./internal/handlers/backup/dump", "CMSJOBS_BENCH_POSTS="+posts)
	if err != nil {
		return "", err
	}
	t := newTable("what", "seconds", "of processors", "of the server's", "ours is faster, clock", "processors")
	for _, pair := range [][2]string{{"dump/own-plain", ""}, {"dump/mariadb-dump-plain", "dump/own-plain"},
		{"dump/mydumper-t2-plain", "dump/own-plain"},
		{"dump/own-zstd", ""}, {"dump/own-pgzip", ""}, {"dump/zstd-1-of-own-plain", ""},
		{"dump/mariadb-dump-gzip", "dump/own-zstd"},
		{"dump/mariadb-dump-zstd-T2", "dump/own-zstd"}, {"dump/mydumper-t2", "dump/own-zstd"},
		{"restore/own-parallel", ""}, {"restore/client-own-file", "restore/own-parallel"},
		{"restore/client-mariadb-dump-file", "restore/own-parallel"}, {"restore/myloader-t2", "restore/own-parallel"},
		{"restore/myloader-t4", "restore/own-parallel"}, {"restore/myloader-t2-rows", "restore/own-parallel"}} {
		it, ours := all[pair[0]], all[pair[1]]
		if it["ns/op"] == 0 {
			t.row(pair[0], "not installed", "–", "–", "–", "–")
			continue
		}
		t.row(pair[0], number(it["ns/op"]/1e9), number(it["cpu-s/op"]), number(it["server-s/op"]),
			ratio(it["ns/op"], ours["ns/op"]), ratio(it["cpu-s/op"], ours["cpu-s/op"]))
	}
	return fmt.Sprintf("%s generated posts, three runs each.\n\n%s", posts, t.String()), nil
}

func number(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", v)
}

// pictures: processor time and memory of a rendering, by the package's own
// script, on photos that this program draws.
func pictures(ctx context.Context, peers string) (string, error) {
	if peers == "" {
		return "", errors.New("sharp is not installed: it needs npm")
	}
	dir, err := os.MkdirTemp("", "cmsjobs-beside-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	t := newTable("picture", "cmsjobs: CPU ms / MB", "sharp, best", "sharp, usual", "imaging", "CPU ratio: best",
		"usual", "imaging")
	for _, p := range []struct {
		name                 string
		width, height, times int
	}{{"1mp.jpg", 1200, 800, 60}, {"12mp.jpg", 4200, 2800, 10}, {"24mp.jpg", 6000, 4000, 10},
		{"12mp-progressive.jpg", 4200, 2800, 10},
		{"3mp.png", 2100, 1400, 10}, {"12mp.png", 4200, 2800, 10}, {"12mp.webp", 4200, 2800, 10}} {
		path := filepath.Join(dir, p.name)
		if err := draw(ctx, path, p.width, p.height, peers); err != nil {
			return "", err
		}
		script, err := filepath.Abs("internal/handlers/media/bench/run.sh")
		if err != nil {
			return "", err
		}
		c := exec.CommandContext(ctx, script, path)
		c.Dir, c.Stderr = peers, os.Stderr
		c.Env = append(os.Environ(), fmt.Sprintf("TIMES=%d", p.times))
		out, err := c.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		all := costs(string(out))
		ours := all["ours"]
		t.row(p.name, ours.String(), all["sharp-best"].String(), all["sharp-usual"].String(), all["imaging"].String(),
			ratio(all["sharp-best"].cpu, ours.cpu), ratio(all["sharp-usual"].cpu, ours.cpu),
			ratio(all["imaging"].cpu, ours.cpu))
	}
	return "Three thumbnails a picture (150×150 and 300×300 cut, 800×800 fitted), drawn photos with grain, ten " +
		"renderings each, of the small one sixty: a worker is warm.\n\n" + t.String(), nil
}

// cost of a rendering: processor milliseconds and the process's peak.
type cost struct{ cpu, peak float64 }

func (c cost) String() string {
	if c.cpu == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.0f", c.cpu, c.peak)
}

// costs reads the script's lines: NAME CPU ms PEAK MB.
func costs(output string) map[string]cost {
	all := map[string]cost{}
	for line := range strings.Lines(output) {
		var name string
		var c cost
		if _, err := fmt.Sscanf(line, "%s %f ms %f MB", &name, &c.cpu, &c.peak); err == nil {
			all[name] = c
		}
	}
	return all
}

// draw makes a picture that compresses like a photo: shapes, light and grain. sharp
// writes what Go does not: WebP, and JPEG in steps.
func draw(ctx context.Context, path string, width, height int, peers string) error {
	if strings.HasSuffix(path, ".webp") || strings.HasSuffix(path, "-progressive.jpg") {
		source := path + ".png"
		c := exec.CommandContext(ctx, "node", "-e", "require('sharp')(process.argv[1])"+
			".webp({quality: 80, force: false}).jpeg({quality: 90, progressive: true, force: false})"+
			".toFile(process.argv[2])", source, path)
		c.Dir, c.Stderr = peers, os.Stderr
		return errors.Join(draw(ctx, source, width, height, peers), c.Run())
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			light := 128 + 90*math.Sin(float64(x)/211+math.Sin(float64(y)/97)*2)*math.Cos(float64(y)/173)
			grain := float64(random.IntN(13)) - 6
			level := func(v float64) uint8 { return uint8(max(0, min(255, v+grain))) }
			picture.SetRGBA(x, y, color.RGBA{level(light), level(light*0.8 + 20), level(255 - light), 255})
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, ".png") {
		err = png.Encode(f, picture)
	} else {
		err = jpeg.Encode(f, picture, &jpeg.Options{Quality: 90})
	}
	return errors.Join(err, f.Close())
}
