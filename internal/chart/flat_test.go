package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAPictureHasNoVariables: renderers that do not support variables would draw them black.
func TestAPictureHasNoVariables(t *testing.T) {
	var b strings.Builder
	p := Picture{Title: "t", Width: 400, Chart: Rows("label", []Row{{Name: "a", Text: "1", Parts: []Part{{Value: 1, Colour: Blue}}}})}
	require.NoError(t, p.Write(&b))
	assert.NotContains(t, b.String(), "var(")
	assert.NotContains(t, b.String(), "--")
	light, dark, ok := strings.Cut(b.String(), "@media (prefers-color-scheme: dark)")
	require.True(t, ok)
	for _, want := range []string{"rect.blue, .chart circle.blue { fill:#1f6fb2 }", ".chart .back { fill:#fff }", ".chart .grid { stroke:#d5dbe3 }"} {
		assert.Contains(t, light, want)
	}
	assert.Contains(t, dark, "rect.blue, .chart circle.blue { fill:#5cb0e8 }")
	assert.Contains(t, light, "font-variant-numeric", "rules without a color stand once")
	assert.NotContains(t, dark, "font-weight:600 }\n.chart .tick")
}
