package chart

import (
	"fmt"
	"strings"
)

// A Row is a horizontal bar, with its name above its start and a text above its end.
type Row struct {
	Name, Text string
	Strong     bool // the texts are emphasized
	// Parts follow each other from the left.
	Parts []Part
	// Low and High are a range for the bar's length, drawn as a thin line below the bar. If High is not above Low, no
	// range is drawn.
	Low, High float64
}

// A Part is a section of a bar.
type Part struct {
	Value  float64 // at least 0
	Colour Colour
}

func (r *Row) length() (sum float64) {
	for _, p := range r.Parts {
		sum += p.Value
	}
	return sum
}

const (
	rowHeight = 38.0
	barTop    = 20.0
	barHeight = 10.0
)

// Rows draws bars one below the other. All bars have the same scale, which starts with 0 at the left. The longest bar
// or range ends at the right. A range is cut off at 1.3 times the longest bar. On a phone, a name may have 30 letters.
func Rows(label string, rows []Row) Chart {
	longest, furthest := 0.0, 0.0
	for i := range rows {
		longest, furthest = max(longest, rows[i].length()), max(furthest, rows[i].High)
	}
	scale := max(longest, min(furthest, 1.3*longest))
	percent := func(value float64) float64 {
		if scale == 0 {
			return 0
		}
		return min(100, 100*value/scale)
	}
	draw := func(b *strings.Builder, _ float64) {
		for i := range rows {
			drawRow(b, &rows[i], float64(i)*rowHeight, percent)
		}
	}
	return Chart{label: label, draw: draw, height: float64(len(rows)) * rowHeight}
}

func drawRow(b *strings.Builder, r *Row, top float64, percent func(float64) float64) {
	name, value := string(Plain), string(Soft)
	if r.Strong {
		name, value = name+" strong", value+" strong"
	}
	text(b, name, 0, top+14, Start, r.Name)
	text(b, value, 100, top+14, End, r.Text)
	at := 0.0
	for _, p := range r.Parts {
		if p.Value > 0 {
			from, to := percent(at), percent(at+p.Value)
			fmt.Fprintf(b, `<rect class="%s" x="%.2f%%" y="%g" width="%.2f%%" height="%g" rx="2"/>`,
				p.Colour, from, top+barTop, to-from, barHeight)
		}
		at += p.Value
	}
	if r.High > r.Low {
		y := top + barTop + barHeight + 2.5
		fmt.Fprintf(b, `<line class="range" x1="%.2f%%" x2="%.2f%%" y1="%g" y2="%[3]g"/>`, percent(r.Low), percent(r.High), y)
	}
}
