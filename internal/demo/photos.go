package demo

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// demoPhoto is a picture that the demo drew.
type demoPhoto struct {
	name, url string
	size      int64
}

// drawPhotos draws seascapes into the site's upload folder: sky, sun, waves
// and grain, so that they compress like photos.
func (d Site) drawPhotos(ctx context.Context) ([]demoPhoto, error) {
	var photos []demoPhoto
	for n := range d.photos {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := demoPhoto{name: fmt.Sprintf("harbour-%d", n+1)}
		p.url = "photos/" + p.name + ".jpg"
		path := filepath.Join(d.Dir, "public", "storage", filepath.FromSlash(p.url))
		if err := writeJPEG(path, seascape(1600, 1067, uint64(n))); err != nil {
			return nil, fmt.Errorf("drawing the demo's photos: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		p.size = info.Size()
		photos = append(photos, p)
	}
	return photos, nil
}

func writeJPEG(path string, picture image.Image) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(jpeg.Encode(f, picture, &jpeg.Options{Quality: 88}), f.Close())
}

// seascape is a sky over water; each number has its own light.
func seascape(width, height int, number uint64) image.Image {
	random := rand.New(rand.NewPCG(seed, number))
	hue := random.Float64()
	sunX, sunY := width/5+random.IntN(width*3/5), height/6+random.IntN(height/4)
	horizon := height * (50 + random.IntN(15)) / 100
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			depth := float64(y) / float64(height)
			red, green, blue := 90+120*hue*(1-depth), 120+60*(1-depth), 200-60*hue*depth
			if y > horizon {
				wave := math.Sin(float64(x)/23+math.Sin(float64(y)/9)*2) * math.Sin(float64(y-horizon)/5)
				red, green, blue = red*0.45+14*wave, green*0.6+16*wave, blue*0.7+18*wave
			} else if far := math.Hypot(float64(x-sunX), float64(y-sunY)); far < 260 {
				light := math.Exp(-far / 70)
				red, green, blue = red+165*light, green+130*light, blue+40*light
			}
			grain := float64(random.IntN(9)) - 4
			picture.SetRGBA(x, y, color.RGBA{level(red + grain), level(green + grain), level(blue + grain), 255})
		}
	}
	return picture
}

func level(v float64) uint8 { return uint8(max(0, min(255, v))) }
