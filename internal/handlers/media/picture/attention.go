package picture

import (
	"image"
	"math"
)

// Attention is the Position that keeps what people look at first: skin, edges and strong
// colours, weighed as smartcrop.js weighs them. Of animations the middle is kept.
const Attention Position = "attention"

// attentionSide is the longer side of the small picture that is judged.
const attentionSide = 96

// The weights of a pixel's score, each part of which is 0 to 1.
const (
	detailWeight     = 0.2
	skinWeight       = 1.8
	saturationWeight = 0.1
	// centreWeight is how much less a cut at the edge is worth than the same in the middle.
	centreWeight = 0.1
)

// attends says whether the place of a cut depends on what the picture shows.
func (s Spec) attends() bool {
	return s.Position == Attention && s.Focus == nil && s.Mode == Cover && s.Width > 0 && s.Height > 0
}

// attend moves the cuts of tasks that depend on what the picture shows.
func attend(base source, h Header, tasks []task) error {
	var scores *attention
	width, height := h.Size()
	for i, t := range tasks {
		if !t.attends {
			continue
		}
		if scores == nil {
			w, ht := contain(h.StoredWidth, h.StoredHeight, attentionSide, attentionSide)
			img, err := drawUpright(base, h, w, ht)
			if err != nil {
				return err
			}
			scores = newAttention(img)
		}
		part := t.part
		part.x = best(scores.columns, width, part.width)
		part.y = best(scores.rows, height, part.height)
		tasks[i].box = stored(part, h.Orientation, width, height)
	}
	return nil
}

// attention is how much each column and row of a picture draws the eye.
type attention struct{ columns, rows []float64 }

func newAttention(img *image.NRGBA) *attention {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	a := &attention{make([]float64, w), make([]float64, h)}
	light := func(x, y int) float64 {
		p := img.Pix[min(max(y, 0), h-1)*img.Stride+4*min(max(x, 0), w-1):]
		return (0.299*float64(p[0]) + 0.587*float64(p[1]) + 0.114*float64(p[2])) / 255
	}
	for y := range h {
		for x := range w {
			p := img.Pix[y*img.Stride+4*x:]
			l := light(x, y)
			edge := math.Abs(4*l - light(x-1, y) - light(x+1, y) - light(x, y-1) - light(x, y+1))
			red, green, blue := float64(p[0])/255, float64(p[1])/255, float64(p[2])/255
			score := detailWeight*min(edge, 1) + skinWeight*skin(red, green, blue, l) +
				saturationWeight*saturation(red, green, blue, l)
			score *= float64(p[3]) / 255
			a.columns[x] += score
			a.rows[y] += score
		}
	}
	return a
}

// skin is how near a colour is to that of skin.
func skin(red, green, blue, light float64) float64 {
	length := math.Sqrt(red*red + green*green + blue*blue)
	if light < 0.2 || length == 0 {
		return 0
	}
	r, g, b := red/length-0.78, green/length-0.57, blue/length-0.44
	const threshold = 0.8
	return max(0, 1-math.Sqrt(r*r+g*g+b*b)-threshold) / (1 - threshold)
}

// saturation is how strong a colour is that is neither dark nor nearly white.
func saturation(red, green, blue, light float64) float64 {
	most, least := max(red, green, blue), min(red, green, blue)
	const threshold = 0.4
	if light < 0.05 || light > 0.9 || most == 0 {
		return 0
	}
	return max(0, (most-least)/most-threshold) / (1 - threshold)
}

// best is where a cut of so many pixels of a side begins: where its scores are highest.
func best(scores []float64, side, cut int) int {
	if cut >= side {
		return 0
	}
	sums := make([]float64, len(scores)+1)
	for i, s := range scores {
		sums[i+1] = sums[i] + s
	}
	upTo := func(pixel float64) float64 { // between two samples as much of the next as is covered
		at := min(pixel*float64(len(scores))/float64(side), float64(len(scores)))
		i := int(at)
		if i >= len(scores) {
			return sums[len(scores)]
		}
		return sums[i] + (at-float64(i))*scores[i]
	}
	middle := (side+1)/2 - (cut+1)/2
	slack := float64(side - cut)
	found, most := middle, -1.0
	for i := range 2*len(scores) + 1 {
		begin := slack * float64(i) / float64(2*len(scores))
		away := 2*begin/slack - 1
		worth := (upTo(begin+float64(cut)) - upTo(begin)) * (1 - centreWeight*away*away)
		if worth > most*(1+1e-9) {
			found, most = int(math.Round(begin)), worth
		}
	}
	if most <= 0 { // nothing stands out
		return middle
	}
	return found
}
