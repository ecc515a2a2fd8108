package chart

import (
	"fmt"
	"html/template"
	"strings"
)

// The size of plots in their own units; they stretch to the space that there is.
const (
	plotWidth  = 600
	plotHeight = 100
	widestBar  = 40.0 // where there are few
)

// Bar is one step of a plot; High stands on top of Low.
type Bar struct {
	Label     string // for who points at it
	Low, High float64
}

// Chart is a plot of bars.
type Chart struct {
	Name        string // read aloud
	Bars        []Bar
	First, Last string // under the axis
	Top         string // the highest value, in words
}

// SVG draws the chart, with its top and the ends of its axis beside it.
func (d Chart) SVG() template.HTML {
	esc := template.HTMLEscapeString
	top := 0.0
	for _, b := range d.Bars {
		top = max(top, b.Low+b.High)
	}
	if top == 0 {
		top = 1
	}
	step := float64(plotWidth) / float64(max(len(d.Bars), 1))
	var out strings.Builder
	fmt.Fprintf(&out,
		`<span class="top">%s</span><svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s"><line class="axis" x1="0" y1="%d" x2="%d" y2="%d"/>`,
		esc(d.Top), plotWidth, plotHeight+1, esc(d.Name), plotHeight, plotWidth, plotHeight)
	for i, b := range d.Bars {
		low, high := b.Low/top*(plotHeight-2), b.High/top*(plotHeight-2)
		width := min(step*0.8, widestBar)
		x := float64(i)*step + (step-width)/2
		fmt.Fprintf(&out, `<g><title>%s</title><rect class="hit" x="%.1f" y="0" width="%.1f" height="%d"/>`,
			esc(b.Label), float64(i)*step, step, plotHeight)
		if low > 0 {
			fmt.Fprintf(&out, `<rect class="low" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x, plotHeight-low,
				width, max(low, 1))
		}
		if high > 0 {
			fmt.Fprintf(&out, `<rect class="high" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x,
				plotHeight-low-max(high, 2), width, max(high, 2))
		}
		out.WriteString(`</g>`)
	}
	// Words stand beside the drawing: in it they would be stretched with it.
	fmt.Fprintf(&out, `</svg><span class="ends"><span>%s</span><span>%s</span></span>`, esc(d.First), esc(d.Last))
	return template.HTML(out.String())
}

// Plot is a chart under its heading.
type Plot struct {
	Key, Sum string // of the heading's text, and what stands beside it
	SVG      template.HTML
}
