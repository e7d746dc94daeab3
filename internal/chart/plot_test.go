package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestColumns(t *testing.T) {
	p := Plot{X: Linear(0, 2), Y: FromZero(10, 1, Short), Height: 100}
	p.Column(Orange, 0, 0.5, 0, 4)
	p.Column(Blue, 0, 0.5, 4, 10)
	p.Column(Blue, 1, 1.5, 0, 0)
	got := parse(t, string(p.Chart(`"<columns>"`).HTML()))
	assert.Equal(t, `"<columns>"`, got.Label)
	require.Len(t, got.Rects, 2, "nothing is no column")
	assert.Equal(t, []float64{60, 40}, []float64{got.Rects[0].Y, got.Rects[0].Height})
	assert.Equal(t, []float64{0, 60}, []float64{got.Rects[1].Y, got.Rects[1].Height})
	assert.Equal(t, "25.00%", got.Rects[0].Width)
	assert.Equal(t, []string{"0", "2", "4", "6", "8", "10"}, got.texts())
	assert.Len(t, got.Lines, 6)
}

func TestLinesAndMarks(t *testing.T) {
	ten := func(v float64) string { return fmt.Sprint("<", v, ">") }
	x, y := LogAround([]float64{1, 100}, nil, Short), LogAround([]float64{1, 10000}, nil, ten)
	x.Label = "a & b"
	p := Plot{X: x, Y: y, Height: 160}
	p.Line(Line{Colour: Blue, Points: []Point{{1, 1}, {10, 100}, {100, 10000}}, Filled: true, Dashes: "5 4"})
	p.Line(Line{Colour: Blue})
	p.Mark(Green, Point{10, 100}, 5)
	p.Strokes(Orange, 1, []float64{10, 100}, 1, 100)
	p.Text(Point{10, 10000}, Middle, Strong, "<top>")
	svg := string(p.Chart("lines").HTML())
	got := parse(t, svg)
	require.Len(t, got.Inner, 3, "an area, a line, strokes")
	assert.Equal(t, "M0.0 160.0L500.0 80.0L1000.0 0.0L1000.0 160.0L0.0 160.0", got.Inner[0].Paths[0].D)
	assert.Equal(t, "M0.0 160.0L500.0 80.0L1000.0 0.0", got.Inner[1].Paths[0].D, "straight from corner to corner")
	assert.Equal(t, "M500.0 160.0L500.0 80.0M1000.0 160.0L1000.0 80.0", got.Inner[2].Paths[0].D)
	assert.Contains(t, svg, `stroke-dasharray="5 4"`)
	require.Len(t, got.Circles, 1)
	assert.Equal(t, "50.00%", got.Circles[0].X)
	assert.Equal(t, []string{"<top>", "<1>", "<10>", "<100>", "<1000>", "<10000>", "1", "10", "100", "a & b"},
		got.texts())
}

// TestAxesOfFewNumbers: whatever the numbers are, no coordinate in a chart is infinite or not a number.
func TestAxesOfFewNumbers(t *testing.T) {
	for _, axis := range []Axis{
		FromZero(0, 0, Short), FromZero(0, 1, Short), LogAround(nil, nil, Short), LogAround([]float64{5}, nil, Short),
		LogAround([]float64{10}, nil, Short), LogAround([]float64{3}, []float64{3}, Short), Linear(0, 0, Tick{}),
	} {
		p := Plot{X: axis, Y: axis, Height: 100}
		p.Line(Line{Points: []Point{{0, 0}, {5, 5}}})
		svg := string(p.Chart("few").HTML())
		assert.NotContains(t, svg, "NaN")
		assert.NotContains(t, svg, "Inf")
	}
}

func TestFromZero(t *testing.T) {
	for _, c := range []struct {
		highest, step float64
		want          string
	}{
		{1, 1, "0 1"}, {3, 1, "0 1 2 3"}, {118, 1, "0 50 100 150"}, {0.3, 0, "0 0.1 0.2 0.3"}, {40, 0, "0 10 20 30 40"},
		{100, 0, "0 20 40 60 80 100"},
	} {
		var got []string
		axis := FromZero(c.highest, c.step, Short)
		for _, tick := range axis.Ticks {
			got = append(got, tick.Text)
		}
		assert.Equal(t, c.want, strings.Join(got, " "), "%+v", c)
		assert.GreaterOrEqual(t, axis.Ticks[len(axis.Ticks)-1].At, c.highest-1e-9)
	}
}

func TestLogAroundChoosesMarks(t *testing.T) {
	axis := LogAround([]float64{70, 80}, []float64{1, 60, 3600, 86400}, Short)
	assert.Equal(t, []Tick{{At: 60, Text: "60"}, {At: 3600, Text: "3.6k"}}, axis.Ticks)
	axis = LogAround([]float64{1, 1e9}, nil, Short)
	assert.Len(t, axis.Ticks, 5)
	assert.Equal(t, 0.0, axis.Place(0), "what has no logarithm stands at the beginning")
	assert.Equal(t, 1.0, axis.Place(1e12), "what is beyond stands at the end")
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.25: "0.25", 950: "950", 999.4: "999", 999.6: "1k", 1200: "1.2k",
		3e6: "3M", 2.5e9: "2.5G",
		4e21: "4e+03E"} {
		assert.Equal(t, want, Short(n))
	}
}

// TestPicture: a picture is a complete SVG document.
func TestPicture(t *testing.T) {
	var b strings.Builder
	c := Rows("What & why.", []Row{{Name: "a", Text: "1", Parts: []Part{{1, Blue}}}})
	require.NoError(t, Picture{Title: "<t>", Subtitle: "s", Width: 400, Chart: c,
		Legend: []Key{{Colour: Blue, Text: "b&b"}, {Colour: Orange, Text: "o"}}}.Write(&b))
	got := parse(t, b.String())
	assert.Equal(t, []string{"<t>", "s", "b&b", "o"}, got.texts())
	require.Len(t, got.Inner, 1)
	assert.Equal(t, []string{"a", "1"}, got.Inner[0].texts())
	assert.Contains(t, b.String(), "<desc id=\"desc\">What &amp; why.</desc>")
	assert.Contains(t, b.String(), "prefers-color-scheme: dark")
	for _, outside := range []string{"http:", "https:", "url(", "<script"} {
		assert.NotContains(t, strings.Replace(b.String(), "http://www.w3.org/2000/svg", "", 1), outside)
	}
	assert.Less(t, b.Len(), 5120)
}

func TestLegend(t *testing.T) {
	assert.Equal(t, `<ul class="legend"><li class="blue">a &lt; b</li><li class="grey dashed">c</li></ul>`,
		string(Legend(Key{Colour: Blue, Text: "a < b"}, Key{Colour: Grey, Text: "c", Dashed: true})))
}
