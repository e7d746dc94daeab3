package chart

import (
	"fmt"
	"html/template"
)

// A Bar is a number and the part of it that stands out.
type Bar struct{ All, Part uint64 }

// Bars draws bars side by side, the part at the bottom in the colour of the class "part" and the
// rest above it in that of "rest". labels are written evenly below, the first and last at the ends.
func Bars(sentence string, bars []Bar, labels []string) template.HTML {
	f := newFrame(sentence, "")
	highest := uint64(0)
	for _, b := range bars {
		highest = max(highest, b.All)
	}
	end := nice(float64(highest))
	for _, share := range []float64{0, 0.5, 1} {
		if share == 0.5 && end < 2 {
			continue // no half of a request
		}
		f.tickY(share, short(share*end))
	}
	step := 1 / float64(max(len(bars), 1))
	for i, b := range bars {
		at := float64(i) * step
		f.bar("rest", at, step, float64(b.Part)/end, float64(b.All)/end)
		f.bar("part", at, step, 0, float64(b.Part)/end)
	}
	for i, text := range labels {
		f.tickX(float64(i)/float64(max(len(labels)-1, 1)), text)
	}
	return f.end()
}

// bar draws from one height to another.
func (f *frame) bar(class string, at, step, from, to float64) {
	if to <= from {
		return
	}
	wide := f.x(at+step) - f.x(at)
	if wide > 3 {
		wide-- // a gap
	}
	fmt.Fprintf(&f.b, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`,
		class, f.x(at), f.y(to), wide, f.y(from)-f.y(to))
}
