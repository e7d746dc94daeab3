package chart

import (
	"encoding/xml"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parsed has the parts of an SVG element that the tests check.
type parsed struct {
	Label string `xml:"aria-label,attr"`
	Texts []struct {
		Class string  `xml:"class,attr"`
		X     string  `xml:"x,attr"`
		Y     float64 `xml:"y,attr"`
		Text  string  `xml:",chardata"`
	} `xml:"text"`
	Rects []struct {
		Class  string  `xml:"class,attr"`
		X      string  `xml:"x,attr"`
		Width  string  `xml:"width,attr"`
		Y      float64 `xml:"y,attr"`
		Height float64 `xml:"height,attr"`
	} `xml:"rect"`
	Lines []struct {
		Class string `xml:"class,attr"`
		X1    string `xml:"x1,attr"`
		X2    string `xml:"x2,attr"`
	} `xml:"line"`
	Circles []struct {
		Class string  `xml:"class,attr"`
		X     string  `xml:"cx,attr"`
		Y     float64 `xml:"cy,attr"`
	} `xml:"circle"`
	Inner []parsed `xml:"svg"`
	Paths []struct {
		Class string `xml:"class,attr"`
		D     string `xml:"d,attr"`
	} `xml:"path"`
}

// parse parses an SVG element. The test fails if the text is not well-formed.
func parse(t *testing.T, svg string) (p parsed) {
	t.Helper()
	require.NoError(t, xml.Unmarshal([]byte(svg), &p), svg)
	return p
}

func (p parsed) texts() (all []string) {
	for _, x := range p.Texts {
		all = append(all, x.Text)
	}
	return all
}

func TestRows(t *testing.T) {
	got := parse(t, string(Rows(`"<all>"`, []Row{
		{Name: "<within>", Text: "4", Parts: []Part{{4, Blue}}},
		{Name: "beyond", Text: "10", Strong: true, Parts: []Part{{4, Blue}, {6, Orange}}},
		{Name: "nothing", Text: "0", Parts: []Part{{0, Blue}}},
	}).HTML()))
	assert.Equal(t, `"<all>"`, got.Label)
	assert.Equal(t, []string{"<within>", "4", "beyond", "10", "nothing", "0"}, got.texts())
	assert.Equal(t, "plain strong", got.Texts[2].Class)
	require.Len(t, got.Rects, 3)
	for i, want := range []struct{ class, x, width string }{
		{"blue", "0.00%", "40.00%"}, {"blue", "0.00%", "40.00%"}, {"orange", "40.00%", "60.00%"},
	} {
		assert.Equal(t, want, struct{ class, x, width string }{got.Rects[i].Class, got.Rects[i].X, got.Rects[i].Width},
			i)
	}
	assert.Equal(t, got.Rects[0].Y+rowHeight, got.Rects[1].Y)
	assert.Empty(t, got.Lines)
	assert.Empty(t, parse(t, string(Rows("none", nil).HTML())).Rects)
}

// TestRowsWithRanges: a range may be up to 1.3 times as long as the longest bar.
func TestRowsWithRanges(t *testing.T) {
	rows := func(high float64) parsed {
		return parse(t, string(Rows("ranges", []Row{
			{Name: "a", Parts: []Part{{100, Blue}}, Low: 90, High: high},
			{Name: "b", Parts: []Part{{50, Grey}}, Low: 50, High: 50},
		}).HTML()))
	}
	got := rows(120)
	require.Len(t, got.Lines, 1, "none where nothing varies")
	assert.Equal(t, "75.00%", got.Lines[0].X1)
	assert.Equal(t, "100.00%", got.Lines[0].X2)
	assert.Equal(t, "83.33%", got.Rects[0].Width)
	got = rows(1000)
	assert.Equal(t, "100.00%", got.Lines[0].X2)
	assert.Equal(t, "76.92%", got.Rects[0].Width)
}
