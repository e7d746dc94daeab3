package chart

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// style is the style sheet of a chart, and page has the additional styles of a page.
var (
	//go:embed style.css
	style string
	//go:embed page.css
	page string
)

// Style returns the style sheet that a page with charts includes once. The page may use its colors, too: --ink, --soft,
// --line, --back, --card, and the colors that the constants below name.
func Style() template.CSS { return template.CSS(style + page) }

// A Colour is a class of the style sheet. It stands for one hue, which is lighter on a dark page.
type Colour string

// The colours. Ink is the color of text.
const (
	Ink    Colour = "ink"
	Blue   Colour = "blue"
	Orange Colour = "orange"
	Green  Colour = "green"
	Grey   Colour = "grey"
	Ochre  Colour = "ochre"
	Purple Colour = "purple"
)

// A Chart is a drawn chart, for a page or a Picture.
type Chart struct {
	label string
	draw  element
	// height is in pixels. The margins are the space that the texts of the axes need around the chart.
	height, top, left, right float64
}

// HTML returns the chart as an element of a page, as wide as its column, with the label for screen readers.
func (c Chart) HTML() template.HTML {
	width := `width="100%"`
	if margins := c.left + c.right; margins > 0 {
		width = fmt.Sprintf(`style="margin:%gpx 0 0 %gpx;width:calc(100%% - %gpx)"`, c.top, c.left, margins)
	}
	return template.HTML(fmt.Sprintf(`<svg class="chart" role="img" aria-label="%s" height="%g" %s>%s</svg>`,
		html.EscapeString(c.label), math.Ceil(c.height), width, c.body(unknownWidth)))
}

// body returns the elements of the chart. Its width is in pixels, or unknownWidth.
func (c Chart) body(width float64) string {
	var b strings.Builder
	c.draw(&b, width)
	return b.String()
}

// An element draws a part of a chart that is width pixels wide.
type element func(b *strings.Builder, width float64)

// unknownWidth is the width of a chart that is as wide as its column on the page.
const unknownWidth = 0

// A Key is an entry of a legend.
type Key struct {
	Colour Colour
	Text   string
	Dashed bool // the key stands for a line with gaps
}

// Legend returns the keys as a list for a page.
func Legend(keys ...Key) template.HTML {
	var b strings.Builder
	b.WriteString(`<ul class="legend">`)
	for _, k := range keys {
		class := string(k.Colour)
		if k.Dashed {
			class += " dashed"
		}
		fmt.Fprintf(&b, `<li class="%s">%s</li>`, class, html.EscapeString(k.Text))
	}
	b.WriteString(`</ul>`)
	return template.HTML(b.String())
}

// text writes text at a place: x is in percent of the width, and y is in pixels from the top.
func text(b *strings.Builder, class string, x, y float64, side Side, content string) {
	fmt.Fprintf(b, `<text class="%s" x="%.2f%%" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, side,
		html.EscapeString(content))
}
