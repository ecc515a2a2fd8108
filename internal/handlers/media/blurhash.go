package media

import (
	"image"
	"math"
	"strings"
)

// The BlurHash format (blurha.sh): the lowest cosine components of a picture in
// linear light, written in base 83. The libraries for it are under licences
// that we may not ship, and the format is a page long.
const base83 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"

// blurHash writes img with so many components across and down (1 to 9 each).
func blurHash(img *image.RGBA, across, down int) string {
	var factors [][3]float64
	for y := range down {
		for x := range across {
			factors = append(factors, component(img, x, y))
		}
	}
	top := 0.0
	for _, f := range factors[1:] {
		top = max(top, math.Abs(f[0]), math.Abs(f[1]), math.Abs(f[2]))
	}
	var b strings.Builder
	write83(&b, across-1+(down-1)*9, 1)
	scale, quantised := 1.0, 0
	if len(factors) > 1 {
		quantised = min(max(int(top*166-0.5), 0), 82)
		scale = float64(quantised+1) / 166
	}
	write83(&b, quantised, 1)
	mean := factors[0]
	write83(&b, gamma(mean[0])<<16|gamma(mean[1])<<8|gamma(mean[2]), 4)
	for _, f := range factors[1:] {
		write83(&b, (level(f[0]/scale)*19+level(f[1]/scale))*19+level(f[2]/scale), 2)
	}
	return b.String()
}

// component is one cosine component of the picture's linear red, green, blue.
func component(img *image.RGBA, cx, cy int) (sum [3]float64) {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	for y := range height {
		wave := math.Cos(math.Pi * float64(cy) * float64(y) / float64(height))
		for x := range width {
			basis := wave * math.Cos(math.Pi*float64(cx)*float64(x)/float64(width))
			at := img.PixOffset(img.Rect.Min.X+x, img.Rect.Min.Y+y)
			for c := range 3 {
				sum[c] += basis * linear(img.Pix[at+c])
			}
		}
	}
	norm := 2.0
	if cx == 0 && cy == 0 {
		norm = 1
	}
	for c := range sum {
		sum[c] *= norm / float64(width*height)
	}
	return sum
}

// linear and gamma turn sRGB into light and back.
func linear(v uint8) float64 {
	f := float64(v) / 255
	if f <= 0.04045 {
		return f / 12.92
	}
	return math.Pow((f+0.055)/1.055, 2.4)
}

func gamma(f float64) int {
	f = min(max(f, 0), 1)
	if f <= 0.0031308 {
		return int(f*12.92*255 + 0.5)
	}
	return int((1.055*math.Pow(f, 1/2.4)-0.055)*255 + 0.5)
}

// level is a component in 19 steps, finer near zero.
func level(f float64) int {
	return min(max(int(math.Floor(math.Copysign(math.Sqrt(math.Abs(f)), f)*9+9.5)), 0), 18)
}

func write83(b *strings.Builder, value, digits int) {
	for i := digits - 1; i >= 0; i-- {
		b.WriteByte(base83[value/int(math.Pow(83, float64(i)))%83])
	}
}
