package admin

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
)

// A stop is an element that the Tab key has focused.
type stop struct {
	Name  string // the name that a screen reader reads out
	Seen  bool   // it looks different with the focus than without it
	Where string // which element it is
}

// focus is JavaScript that describes the focused element. A field's name is its label.
const focus = `(() => {
	const e = document.activeElement, style = getComputedStyle(e);
	const label = [...e.labels?.[0]?.childNodes ?? []].find((n) => n.nodeType === Node.TEXT_NODE)?.textContent;
	return {
		Name: (e.getAttribute("aria-label") ?? label ?? e.textContent).trim(),
		Seen: e.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
		Where: e.id ? "#" + e.id : e.tagName,
	};
})()`

func focused(t *testing.T, b *browsertest.Browser) (s stop) {
	t.Helper()
	b.Evaluate(focus, &s)
	return s
}

// byKeyboard uses the page without a mouse. Every stop has a name and a visible focus, and the focus stays after a peek
// and a reset.
func byKeyboard(t *testing.T, b *browsertest.Browser, d *demo) {
	t.Helper()
	for range 30 {
		d.ask("/login", "203.0.113.201", "")
	}
	b.Do(chromedp.Reload())
	b.Until(`[...document.querySelectorAll("#refused code")].some((e) => e.textContent === "ip:203.0.113.201")`)
	var stops []string
	peek := "Look up ip:203.0.113.201"
	for range 60 {
		b.Do(chromedp.KeyEvent(kb.Tab))
		s := focused(t, b)
		if s.Where == "BODY" { // after the last stop
			break
		}
		assert.NotEmpty(t, s.Name, s.Where)
		assert.True(t, s.Seen, "%s, %s: the focus is not seen", s.Where, s.Name)
		stops = append(stops, s.Name)
	}
	at := func(name string) int {
		i := slices.Index(stops, name)
		require.GreaterOrEqual(t, i, 0, "%s is not reached: %s", name, strings.Join(stops, "; "))
		return i
	}
	assert.Equal(t, "Skip to the form", stops[0])
	assert.IsIncreasing(t, []int{at("5 minutes"), at("Filter"), at("Sort by"), at("The charts as a table"), at(peek), at("Rule"),
		at("Reset…"), at("metrics")})

	// The order of the list changes, so the button is found by its key.
	b.Do(chromedp.Focus(`#refused button[aria-label="`+peek+`"]`), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelector("#result").textContent.startsWith("0 of 10 left")`)
	assert.Equal(t, peek, focused(t, b).Name)
	b.Do(chromedp.Focus(`#result button`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#confirm"))
	assert.Equal(t, "Cancel", focused(t, b).Name, "what harms is not what Enter does at once")
	b.Do(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible("#confirm"))
	assert.Equal(t, "Reset this key…", focused(t, b).Name)
	b.Do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#confirm"), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelector("#result p").textContent === "Reset: 10 of 10 left now."`)
	assert.Equal(t, "#result", focused(t, b).Where)
}
