package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// The drawing is small, because it is scaled to its column and its text must be readable on a
// phone.
const (
	width       = 400.0
	inside      = 160.0 // height of the drawing without what is written below it
	left, right = 46.0, 10.0
	top, bottom = 10.0, 22.0
	label       = 18.0 // height of the label of an axis
)

// A frame is the drawing with its two axes, each from 0 to 1 inside it.
type frame struct{ b strings.Builder }

// newFrame begins a drawing that the sentence describes, with what is written below the axis, or "".
func newFrame(sentence, below string) *frame {
	f := &frame{}
	height := top + inside + bottom
	if below != "" {
		height += label
	}
	fmt.Fprintf(&f.b, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(sentence))
	if below != "" {
		fmt.Fprintf(&f.b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, f.x(0.5), height-6, html.EscapeString(below))
	}
	return f
}

// x and y turn a share of an axis into a place.
func (f *frame) x(share float64) float64 { return left + share*(width-left-right) }
func (f *frame) y(share float64) float64 { return top + (1-share)*inside }

func (f *frame) tickX(share float64, text string) {
	anchor := "middle"
	switch {
	case share < 0.05:
		anchor = "start"
	case share > 0.95:
		anchor = "end"
	}
	fmt.Fprintf(&f.b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`,
		f.x(share), top+inside+15, anchor, html.EscapeString(text))
}

func (f *frame) tickY(share float64, text string) {
	fmt.Fprintf(&f.b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
		f.x(0), f.x(1), f.y(share), f.y(share), left-5, f.y(share)+4, html.EscapeString(text))
}

func (f *frame) end() template.HTML {
	f.b.WriteString("</svg>")
	return template.HTML(f.b.String())
}

// short writes a number in the room of a tick: 950, 1.2k, 3M.
func short(n float64) string {
	if n < 1000 {
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	value, unit := humanize.ComputeSI(n)
	return strconv.FormatFloat(value, 'g', 3, 64) + unit
}

// nice returns the least of 1, 2, 5, 10, 20, ... that is not below n: the end of an axis.
func nice(n float64) float64 {
	if n <= 1 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(n)))
	for _, m := range []float64{1, 2, 5} {
		if m*ten >= n {
			return m * ten
		}
	}
	return 10 * ten
}
