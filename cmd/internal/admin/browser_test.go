package admin

import (
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
)

// serve serves the page and returns its URL. At the end, the streams end before the server closes.
func (d *demo) serve(t *testing.T) (url string) {
	server := httptest.NewServer(d.admin.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { d.admin.Close() })
	return server.URL
}

// allows reports whether a rule would admit n tokens for a typed key.
func allows(t *testing.T, r Rule, typed string, n uint64) bool {
	b, err := r.Buckets.Bucket([]string{typed})
	require.NoError(t, err)
	return r.Limiter.Peek(b.Key, n).Allowed
}

// number is a JavaScript function that returns the number at the start of an element's text.
const number = `const number = (s) => parseFloat(document.querySelector(s).textContent.replaceAll(",", ""));`

func TestLivePage(t *testing.T) {
	d := newDemo(t, KeysFull, 0)
	d.run(t)
	b := browsertest.New(t)
	b.Do(b.Size(1280, 900, "light"), chromedp.Navigate(d.serve(t)))
	b.Until(`document.querySelectorAll(".rule").length === 6 && document.querySelector("#link").textContent === "live"`)
	var quiet int
	b.Evaluate(`[...document.querySelectorAll(".quiet")].filter((e) => !e.hidden).length`, &quiet)
	assert.Equal(t, 6, quiet, "no traffic yet")

	for range 3 {
		d.second()
	}
	b.Until(`(() => {` + number + ` return number("#requests-rate") > 50; })()`)
	b.Until(`/^(19|20) ms or less for half$/.test(document.querySelector("#requests-time").textContent) &&
		/^95 % in \d\d ms, 99 % in 1\d\d ms$/.test(document.querySelector("#requests-slow").textContent)`)
	b.Until(`(() => {` + number + ` return number("#requests-refused") > 0; })()`)
	b.Until(`[...document.querySelectorAll(".meaning")].some((e) => e.textContent === "for /login, a limit for each client address")`)
	b.Until(`[...document.querySelectorAll(".tag.mode")].every((e) => getComputedStyle(e).display === "none")`)
	b.Evaluate(`window.was = document.querySelector(".rule .area").getAttribute("d")`, nil)
	d.second()
	b.Until(`document.querySelector(".rule .area").getAttribute("d") !== window.was`)

	// From here on, the clock does not move. So a bucket gets no token back, however slow the browser is.
	for range 30 {
		d.ask("/login", "203.0.113.200", "")
	}
	d.tick()
	b.Until(`[...document.querySelectorAll("#refused code")].some((e) => e.textContent === "ip:203.0.113.200")`)

	t.Run("the form", func(t *testing.T) {
		b.Set("#form-rule", "login")
		b.Do(chromedp.SendKeys("#form-parts input", "203.0.113.200\r"))
		b.Until(`document.querySelector("#result").textContent.startsWith("0 of 10 left: refused now, the next passes in ")`)
		b.Do(chromedp.Click("#form-reset"), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm [value=reset]"))
		b.Until(`document.querySelector("#result p").textContent === "Reset: 10 of 10 left now."`)
		assert.True(t, allows(t, d.rules[1], "203.0.113.200", 10))

		b.Set("#form-parts input", "nonsense")
		b.Do(chromedp.Click("#form button[type=submit]"))
		b.Until(`document.querySelector("#result.bad") && ` +
			`document.querySelector("#result").textContent.includes("not an IP address")`)
		assert.Contains(t, b.Problem(), "422", "the refusal stands in the console")
	})

	t.Run("every width and colour", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			var background string
			for _, width := range []int64{360, 1280} {
				b.Do(b.Size(width, 800, scheme),
					chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &background))
				assert.Zero(t, b.Over(), "%d pixels wide", width)
				var refusedFirst bool
				b.Evaluate(`document.querySelector("#most-refused").getBoundingClientRect().bottom <=
					document.querySelector("#rules").getBoundingClientRect().top`, &refusedFirst)
				assert.Equal(t, width == 360, refusedFirst, "%d pixels wide", width)
			}
			assert.Equal(t, map[string]string{"light": "rgb(244, 246, 248)", "dark": "rgb(15, 20, 25)"}[scheme], background)
		}
	})

	t.Run("filter and sort", func(t *testing.T) {
		b.Do(chromedp.SendKeys("#filter", "LOG"))
		b.Until(`[...document.querySelectorAll(".rule")].filter((e) => !e.hidden).length === 2`) // login and log-in
		b.Set("#filter", "")
		b.Set("#sort", "requests")
		b.Until(`document.querySelector(".rule h3").textContent === "everything"`)
	})
	t.Run("a longer span", func(t *testing.T) {
		for range 20 {
			d.second()
		}
		b.Evaluate(`window.was = document.querySelector(".rule .area").getAttribute("d")`, nil)
		b.Do(chromedp.Click(`#spans [value="1h"]`))
		b.Until(`document.querySelector(".from").textContent === "1 hour ago" &&
			document.querySelector(".rule .area").getAttribute("d") !== window.was &&
			document.querySelector(".rule svg").getAttribute("aria-label").startsWith("Last hour: allowed ")`)
		b.Do(chromedp.Click(`#spans [value="24h"]`))
		b.Until(`[...document.querySelectorAll(".quiet")].every((e) => e.textContent === "no requests in the last day")`)
		b.Do(chromedp.Click(`#spans [value="5m"]`))
		b.Until(`document.querySelector(".from").textContent === "5 minutes ago"`)
	})
	byKeyboard(t, b, d)
	b.NoProblems()

	t.Run("the connection is lost", func(t *testing.T) {
		d.admin.Close()
		b.Until(`!document.querySelector("#lost").hidden && document.querySelector("#link").classList.contains("bad")`)
	})
}
