package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// A Picture is a chart as a separate file, with a title above it.
type Picture struct {
	Title    string
	Subtitle string // in a separate line; "" for none
	Width    float64
	TextSize float64 // pixels at that width; 0 means 13
	Chart    Chart
	Legend   []Key
}

// Write writes the picture as an SVG document.
func (p Picture) Write(w io.Writer) error {
	size := p.TextSize
	if size == 0 {
		size = 13
	}
	margin := min(1.1*size, 16)
	var b strings.Builder
	y := margin + size
	fmt.Fprintf(&b, `<text class="head" x="%.1f" y="%.1f">%s</text>`+"\n", margin, y, html.EscapeString(p.Title))
	if p.Subtitle != "" {
		y += 1.5 * size
		fmt.Fprintf(&b, `<text class="soft" x="%.1f" y="%.1f">%s</text>`+"\n", margin, y, html.EscapeString(p.Subtitle))
	}
	y += size + p.Chart.top
	width := p.Width - 2*margin - p.Chart.left - p.Chart.right
	fmt.Fprintf(&b, `<svg x="%.1f" y="%.1f" width="%.1f" height="%.1f" overflow="visible">%s</svg>`+"\n",
		margin+p.Chart.left, y, width, p.Chart.height, p.Chart.body(width))
	y += p.Chart.height
	if len(p.Legend) > 0 {
		y += 1.2 * size
		p.legend(&b, margin, y, size)
	}
	height := math.Ceil(y + margin)

	label := p.Title
	if p.Subtitle != "" {
		label += ": " + p.Subtitle
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" `+
		`viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" role="img" aria-labelledby="title desc">
<title id="title">%[3]s</title>
<desc id="desc">%[4]s</desc>
<style>
%[5]s.chart text, .chart .tick { font-size:%[6]gpx } .chart .head { font-size:%[7]gpx; font-weight:600 }
</style>
<rect class="back" width="%[1]g" height="%[2]g" rx="8"/>
%[8]s</svg>
`, p.Width, height, html.EscapeString(label), html.EscapeString(p.Chart.label), flatStyle(), size, 1.2*size, b.String())
	return err
}

func (p Picture) legend(b *strings.Builder, x, y, size float64) {
	const (
		box       = 0.8  // side of a key's box, as a fraction of the text size
		character = 0.53 // average width of a character, as a fraction of the text size
	)
	for _, k := range p.Legend {
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1[4]f" rx="2"/>`,
			k.Colour, x, y-box*size, box*size)
		x += (box + 0.5) * size
		fmt.Fprintf(b, `<text class="soft" x="%.1f" y="%.1f">%s</text>`+"\n", x, y, html.EscapeString(k.Text))
		x += (float64(len([]rune(k.Text)))*character + 1) * size
	}
}
