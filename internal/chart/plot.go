package chart

import (
	"fmt"
	"html"
	"strings"
)

// A Plot is a field with two axes. Each line, column or mark is drawn over the earlier ones.
//
// Horizontal positions are fractions of the width. So a plot can be as wide as its column on the page, and its text
// keeps its size.
type Plot struct {
	X, Y     Axis
	Height   float64 // pixels between the ends of the vertical axis
	TextSize float64 // of the ticks in a Picture that sets its text size; 0 means the size on a page

	elements []element
}

// tickSize is the text size of the class tick in the style sheet.
const tickSize = 12.0

// xPercent returns the position of a number on the horizontal axis, in percent of the width.
func (p *Plot) xPercent(x float64) float64 { return 100 * p.X.Place(x) }

// yPixels returns the position of a number on the vertical axis, in pixels from the top.
func (p *Plot) yPixels(y float64) float64 { return (1 - p.Y.Place(y)) * p.Height }

// add adds an element that is the same at every width.
func (p *Plot) add(format string, values ...any) {
	p.elements = append(p.elements, func(b *strings.Builder, _ float64) { fmt.Fprintf(b, format, values...) })
}

// A Line joins points.
type Line struct {
	Points []Point
	Colour Colour
	Width  float64 // pixels; 0 means 2
	Dashes string  // lengths of dashes and gaps in pixels, such as "5 4"; "" is a whole line
	Filled bool    // the area between the line and 0 is tinted
}

// Line draws a line. Without points it draws nothing.
func (p *Plot) Line(l Line) {
	if len(l.Points) == 0 {
		return
	}
	moves := make([]move, len(l.Points))
	for i, at := range l.Points {
		moves[i] = move{"L", p.X.Place(at.X), p.yPixels(at.Y)}
	}
	moves[0].command = "M"
	if l.Filled {
		first, last, zero := moves[0], moves[len(moves)-1], p.yPixels(0)
		p.path(string(l.Colour)+" area", 0, "",
			append(moves[:len(moves):len(moves)], move{"L", last.x, zero}, move{"L", first.x, zero}))
	}
	p.path(string(l.Colour), l.Width, l.Dashes, moves)
}

// Strokes draws vertical lines from low to high, at the given places on the horizontal axis.
func (p *Plot) Strokes(colour Colour, width float64, places []float64, low, high float64) {
	var moves []move
	for _, at := range places {
		x := p.X.Place(at)
		moves = append(moves, move{"M", x, p.yPixels(low)}, move{"L", x, p.yPixels(high)})
	}
	p.path(string(colour), width, "", moves)
}

// A move is a step of a path. It goes to a point, which is given by a fraction of the width and a height in pixels.
type move struct {
	command string
	x, y    float64
}

// path draws a path. In SVG, the coordinates of a path cannot be fractions of a width. So if the width is unknown, the
// path is in a nested field, which the browser stretches without changing the width of the stroke.
func (p *Plot) path(class string, stroke float64, dashes string, moves []move) {
	if stroke == 0 {
		stroke = 2
	}
	if dashes != "" {
		dashes = ` stroke-dasharray="` + dashes + `"`
	}
	p.elements = append(p.elements, func(b *strings.Builder, width float64) {
		const stretched = 1000
		if width == unknownWidth {
			fmt.Fprintf(b, `<svg class="stretched" viewBox="0 0 %d %g" preserveAspectRatio="none" width="100%%" height="%[2]g">`,
				stretched, p.Height)
			defer b.WriteString(`</svg>`)
			width = stretched
		}
		fmt.Fprintf(b, `<path class="%s" stroke-width="%g"%s d="`, class, stroke, dashes)
		for _, m := range moves {
			fmt.Fprintf(b, "%s%.1f %.1f", m.command, width*m.x, m.y)
		}
		b.WriteString(`"/>`)
	})
}

// Column draws a vertical bar between two places on the horizontal axis, from low to high. If high is not above low,
// Column draws nothing.
func (p *Plot) Column(colour Colour, from, to, low, high float64) {
	if high <= low {
		return
	}
	p.add(`<rect class="%s" x="%.2f%%" y="%.2f" width="%.2f%%" height="%.2f"/>`,
		colour, p.xPercent(from), p.yPixels(high), p.xPercent(to)-p.xPercent(from), p.yPixels(low)-p.yPixels(high))
}

// Mark draws a dot with a radius in pixels. A large dot has a ring in the color of the page.
func (p *Plot) Mark(colour Colour, at Point, radius float64) {
	ring := 0
	if radius >= 5 {
		ring = 2
	}
	p.add(`<circle class="%s" cx="%.2f%%" cy="%.2f" r="%g" stroke-width="%d"/>`,
		colour, p.xPercent(at.X), p.yPixels(at.Y), radius, ring)
}

// A Side says which end of a text is at the place of the text.
type Side string

const (
	Start  Side = "start"
	Middle Side = "middle"
	End    Side = "end"
)

// A TextStyle is how a text looks.
type TextStyle string

const (
	Plain  TextStyle = "plain"
	Soft   TextStyle = "soft"
	Strong TextStyle = "strong"
)

// Text writes text with the given side at the point at. Vertically, the point is on the baseline of the text.
func (p *Plot) Text(at Point, side Side, style TextStyle, content string) {
	p.elements = append(p.elements, func(b *strings.Builder, _ float64) {
		text(b, string(style), p.xPercent(at.X), p.yPixels(at.Y), side, content)
	})
}

// Chart returns the plot with its axes. The label says in one sentence what the plot shows.
func (p *Plot) Chart(label string) Chart {
	size := p.TextSize
	if size == 0 {
		size = tickSize
	}
	c := Chart{label: label, height: p.Height}
	var grid, ticks strings.Builder
	for _, t := range p.Y.Ticks {
		y := p.yPixels(t.At)
		fmt.Fprintf(&grid, `<line class="grid" x1="0" x2="100%%" y1="%.1f" y2="%.1[1]f"/>`, y)
		fmt.Fprintf(&ticks, `<text class="tick" x="-6" y="%.1f" text-anchor="end">%s</text>`, y+size/3,
			html.EscapeString(t.Text))
		c.top, c.left, c.right = 10, 52, 10
	}
	for _, t := range p.X.Ticks {
		class, x := "tick", p.xPercent(t.At)
		if t.Minor {
			class = "tick minor"
		}
		text(&ticks, class, x, p.Height+1.3*size, sideOf(x), t.Text)
		c.height = p.Height + 1.8*size
	}
	if p.X.Label != "" {
		text(&ticks, "tick", 50, c.height+size, Middle, p.X.Label)
		c.height += 1.5 * size
	}
	elements := p.elements
	c.draw = func(b *strings.Builder, width float64) {
		b.WriteString(grid.String())
		for _, draw := range elements {
			draw(b, width)
		}
		b.WriteString(ticks.String())
	}
	return c
}

// sideOf returns the side for the text of a tick. It keeps the first and the last tick of an axis inside the chart.
func sideOf(percent float64) Side {
	switch {
	case percent < 4:
		return Start
	case percent > 96:
		return End
	}
	return Middle
}
