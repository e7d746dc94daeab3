package chart

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heights are those of the rectangles of a class.
func heights(t *testing.T, svg, class string) (all []float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`<rect class="`+class+`"[^>]* height="([^"]+)"`).FindAllStringSubmatch(svg, -1) {
		h, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		all = append(all, h)
	}
	return all
}

func TestBars(t *testing.T) {
	svg := string(Bars(`"<all>"`, []Bar{{10, 4}, {0, 0}, {5, 5}}, []string{"a", "b"}))
	assert.Contains(t, svg, `aria-label="&#34;&lt;all&gt;&#34;"`)
	assert.Equal(t, []float64{0.4 * inside, 0.5 * inside}, heights(t, svg, "part"))
	assert.Equal(t, []float64{0.6 * inside}, heights(t, svg, "rest"))
	assert.Contains(t, svg, ">10</text>")
	assert.NotContains(t, string(Bars("none", nil, nil)), "rect")
}

func TestCurve(t *testing.T) {
	svg := string(Curve("a curve", []Point{{1, 1}, {10, 100}, {100, 10000}}, 1, Axis{Label: "x", Log: true}, Axis{Log: true}))
	assert.Contains(t, svg, `points="46.00,170.00 218.00,90.00 390.00,10.00"`, "a straight line from corner to corner")
	assert.Equal(t, 1, strings.Count(svg, `class="chosen"`))
	assert.Contains(t, svg, ">100</text>")
	assert.Contains(t, svg, ">10k</text>")
	one := string(Curve("one", []Point{{5, 0}}, 0, Axis{Log: true}, Axis{}))
	assert.NotContains(t, one, "NaN")
	assert.NotContains(t, string(Curve("none", nil, -1, Axis{Log: true}, Axis{})), "NaN")
}

func TestNice(t *testing.T) {
	for n, want := range map[float64]float64{0: 1, 1: 1, 1.5: 2, 3: 5, 7: 10, 100: 100, 101: 200} {
		assert.Equal(t, want, nice(n))
	}
}

func TestTicksOfOnesOwn(t *testing.T) {
	s := Axis{Log: true, Ticks: []float64{1, 60, 3600, 86400}}.scale([]float64{70, 80})
	assert.Equal(t, []float64{60, 3600}, s.ticks)
}
