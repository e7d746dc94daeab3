package admin

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A browser is one window of a real Chromium.
type browser struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string // what the console complained of
}

// chromium returns the program, or skips the test: never where CI is set.
func chromium(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no chromium, chromium-browser or google-chrome on the PATH")
	}
	t.Skip("there is no chromium, chromium-browser or google-chrome on the PATH")
	return ""
}

func newBrowser(t *testing.T) *browser {
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.DisableGPU, chromedp.NoSandbox, chromedp.ExecPath(chromium(t)),
		chromedp.WSURLReadTimeout(2*time.Minute))
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	// t.Context is done before the browser is ended.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	// It complains of events that are newer than itself; the test looks at what it is for by itself.
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	// Cancel waits until the browser has ended and its directory is gone.
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.note)
	return b
}

// note collects errors and warnings of the console, of scripts and of the network.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, string(e.Type))
	case *log.EventEntryAdded:
		b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// until waits until an expression is true in the page.
func (b *browser) until(expression string) {
	b.t.Helper()
	var got bool
	err := chromedp.Run(b.ctx, chromedp.Poll(expression, &got, chromedp.WithPollingInterval(20*time.Millisecond),
		chromedp.WithPollingTimeout(2*time.Minute)))
	if err != nil {
		var page string
		b.evaluate(`document.body.innerText`, &page)
		b.t.Fatalf("%s: %v: the page says: %s", expression, err, page)
	}
}

func (b *browser) evaluate(expression string, value any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, value))
}

// set gives a field a value, as a person would.
func (b *browser) set(field, value string) {
	b.t.Helper()
	b.evaluate(fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		field.value = %q;
		for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
	})()`, field, value), nil)
}

// size sets the window and whether the system is dark.
func (b *browser) size(width, height int64, scheme string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	}
}

func (b *browser) noProblems() {
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.problems)
}

// serve serves the page. The streams end before the server waits for them.
func (d *demo) serve(t *testing.T) (url string) {
	server := httptest.NewServer(d.admin.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { d.admin.Close() })
	return server.URL
}

// number reads the number at the beginning of an element's text.
const number = `const number = (s) => parseFloat(document.querySelector(s).textContent.replaceAll(",", ""));`

func TestLivePage(t *testing.T) {
	d := newDemo(t, config.KeysFull, 0)
	d.run(t)
	b := newBrowser(t)
	b.do(b.size(1280, 900, "light"), chromedp.Navigate(d.serve(t)))
	b.until(`document.querySelectorAll(".rule").length === 6 && document.querySelector("#link").textContent === "live"`)
	var quiet int
	b.evaluate(`[...document.querySelectorAll(".quiet")].filter((e) => !e.hidden).length`, &quiet)
	assert.Equal(t, 6, quiet, "no traffic yet")

	for range 3 {
		d.second()
	}
	b.until(`(() => {` + number + ` return number("#requests-rate") > 50; })()`)
	b.until(`document.querySelector("#requests-time").textContent === "12 ms, mean"`)
	b.until(`(() => {` + number + ` return number("#requests-refused") > 0; })()`)
	b.until(`[...document.querySelectorAll(".meaning")].some((e) => e.textContent === "for /login, by ip")`)
	b.until(`[...document.querySelectorAll(".tag.mode")].every((e) => getComputedStyle(e).display === "none")`)
	b.evaluate(`window.was = document.querySelector(".rule .area").getAttribute("d")`, nil)
	d.second()
	b.until(`document.querySelector(".rule .area").getAttribute("d") !== window.was`)

	// From here on no bucket gets a token back, however slow the browser is.
	for range 30 {
		d.ask("/login", "203.0.113.200", "")
	}
	d.tick()
	b.until(`[...document.querySelectorAll("#refused code")].some((e) => e.textContent === "ip:203.0.113.200")`)

	t.Run("the form", func(t *testing.T) {
		b.set("#form-rule", "login")
		b.do(chromedp.SendKeys("#form-parts input", "203.0.113.200\r"))
		b.until(`document.querySelector("#result").textContent.startsWith("0 of 10 left: refused now, the next passes in ")`)
		b.do(chromedp.Click("#form-reset"), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm [value=reset]"))
		b.until(`document.querySelector("#result p").textContent === "Reset: 10 of 10 left now."`)
		assert.True(t, d.rules[1].Limiter.PeekKey(d.rules[1].Key([]string{"203.0.113.200"}), 10).Allowed)

		b.set("#form-parts input", "nonsense")
		b.do(chromedp.Click("#form button[type=submit]"))
		b.until(`document.querySelector("#result.bad") && ` +
			`document.querySelector("#result").textContent.includes("not an IP address")`)
		b.mu.Lock()
		defer b.mu.Unlock()
		require.NotEmpty(t, b.problems)
		assert.Contains(t, b.problems[len(b.problems)-1], "422", "the refusal stands in the console")
		b.problems = b.problems[:len(b.problems)-1]
	})

	t.Run("every width and colour", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			var background string
			for _, width := range []int64{360, 1280} {
				var over int
				b.do(b.size(width, 800, scheme), chromedp.Evaluate(
					`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over),
					chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &background))
				assert.Zero(t, over, "%d pixels wide", width)
				var refusedFirst bool
				b.evaluate(`document.querySelector("#most-refused").getBoundingClientRect().bottom <=
					document.querySelector("#rules").getBoundingClientRect().top`, &refusedFirst)
				assert.Equal(t, width == 360, refusedFirst, "%d pixels wide", width)
			}
			assert.Equal(t, map[string]string{"light": "rgb(244, 246, 248)", "dark": "rgb(15, 20, 25)"}[scheme], background)
		}
	})

	t.Run("filter and sort", func(t *testing.T) {
		b.do(chromedp.SendKeys("#filter", "LOG"))
		b.until(`[...document.querySelectorAll(".rule")].filter((e) => !e.hidden).length === 2`) // login and log
		b.set("#filter", "")
		b.set("#sort", "requests")
		b.until(`document.querySelector(".rule h3").textContent === "everything"`)
	})
	b.byKeyboard(d)
	b.noProblems()

	t.Run("the connection is lost", func(t *testing.T) {
		d.admin.Close()
		b.until(`!document.querySelector("#lost").hidden && document.querySelector("#link").classList.contains("bad")`)
	})
}
