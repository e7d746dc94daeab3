package chart

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRows(t *testing.T) {
	svg := string(Rows(`"<all>"`, []Row{
		{"<within>", "4", Bar{All: 4, Part: 4}}, {"beyond", "10", Bar{All: 10, Part: 4}}, {"nothing", "0", Bar{}},
	}))
	type rect struct {
		Class string `xml:"class,attr"`
		X     string `xml:"x,attr"`
		Width string `xml:"width,attr"`
		Y     int    `xml:"y,attr"`
	}
	var got struct {
		Label  string   `xml:"aria-label,attr"`
		Height int      `xml:"height,attr"`
		Texts  []string `xml:"text"`
		Rects  []rect   `xml:"rect"`
	}
	require.NoError(t, xml.Unmarshal([]byte(svg), &got), svg)
	assert.Equal(t, `"<all>"`, got.Label)
	assert.Equal(t, 3*RowHeight, got.Height)
	assert.Equal(t, []string{"<within>", "4", "beyond", "10", "nothing", "0"}, got.Texts)
	assert.Equal(t, []rect{
		{"part", "0.00%", "40.00%", 20}, {"part", "0.00%", "40.00%", 20 + RowHeight}, {"rest", "40.00%", "60.00%", 20 + RowHeight},
	}, got.Rects)
	assert.Equal(t, 1, strings.Count(string(Rows("none", nil)), "<svg"))
}
