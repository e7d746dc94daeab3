package live

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
)

var screenshots = flag.String("screenshots", "", "a directory to write pictures of the live page to")

// TestPageInABrowser: the live page shows this program's data, at every width and in every color scheme.
func TestPageInABrowser(t *testing.T) {
	b := browsertest.New(t)
	s := newShop(t, Options{Keys: admin.KeysFull, Reset: true, Version: "v0.9.0"})
	server := httptest.NewServer(s.page.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { s.page.Close() }) // ends the event stream, for which the server waits
	for i := range 40 {
		s.ask(i, fmt.Sprintf("remote_address=198.51.100.%d", i), "everyone=all")
	}
	s.ask(30, "path=/login,remote_address=203.0.113.66", "tenant=acme")
	b.Do(b.Size(1280, 1000, "light"), chromedp.Navigate(server.URL))
	b.Until(`document.querySelectorAll(".rule").length === 5 && document.querySelector("#link").textContent === "live"`)
	assert.Equal(t, "weir-envoy", s.textOf(b, "#program"))
	b.Until(`document.title === "weir-envoy"`)
	b.Until(`document.querySelectorAll("#shared .of-keys").length === 6`)
	b.Until(`document.querySelector("#requests-failures-name").textContent === "answered with an error" &&
		document.querySelector("#requests-time-box").hidden`)
	b.Until(`/^rules read .*, generation 1$/.test(document.querySelector("#reload").textContent)`)
	b.Until(`[...document.querySelectorAll(".meaning")].some((e) =>
		e.textContent === "for domain shop, path=/login, a limit for each remote_address")`)
	b.Until(`[...document.querySelectorAll(".meaning")].some((e) =>
		e.textContent === "for domain shop, everyone=all, one limit for all together")`)
	stop := s.traffic()
	defer stop()
	b.Until(`[...document.querySelectorAll("#refused code")].some((e) =>
		e.textContent === "path=/login · remote_address=203.0.113.66")`)

	b.Do(chromedp.Click("#shared-box summary"))
	b.Until(`[...document.querySelectorAll("#shared b")].some((e) => e.textContent === "fixed window of 6h")`)
	b.Do(chromedp.Click("#shared-box summary"))
	b.Until(`(() => {
		const card = [...document.querySelectorAll(".rule")].find((e) => e.querySelector("h3").textContent === "shop.everyone_all");
		return card.querySelector(".area").getAttribute("d") !== "";
	})()`)

	b.Set("#form-rule", "shop.path_/login.remote_address")
	b.Until(`document.querySelector("#form-parts label").textContent === "remote_address"`)
	b.Do(chromedp.SendKeys("#form-parts input", "203.0.113.66\r"))
	b.Until(`document.querySelector("#result").textContent.startsWith("0 of 5 left: refused now, the next passes in ")`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			b.Do(b.Size(width, 1000, scheme))
			assert.Zero(t, b.Over(), "%d pixels wide", width)
			if *screenshots != "" {
				name := filepath.Join(*screenshots, fmt.Sprintf("weir-envoy-%d-%s.png", width, scheme))
				require.NoError(t, os.WriteFile(name, b.Picture(), 0o644))
			}
		}
	}
	b.Do(chromedp.Click("#form-reset"), chromedp.WaitVisible("#confirm"), chromedp.Click("#confirm [value=reset]"))
	b.Until(`document.querySelector("#result p").textContent === "Reset: 5 of 5 left now."`)
	b.NoProblems()
}

// TestPageWithoutReset: the page offers no resets if they are off.
func TestPageWithoutReset(t *testing.T) {
	b := browsertest.New(t)
	s := newShop(t, Options{Keys: admin.KeysOff})
	server := httptest.NewServer(s.page.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { s.page.Close() })
	s.ask(30, "path=/login,remote_address=203.0.113.66")
	b.Do(chromedp.Navigate(server.URL))
	b.Until(`document.querySelectorAll(".rule").length === 5`)
	b.Until(`document.querySelector("#refused-empty").textContent === "Keys are not shown: DEBUG_KEYS=off says so."`)
	b.Set("#form-rule", "shop.path_/login.remote_address")
	b.Do(chromedp.SendKeys("#form-parts input", "203.0.113.66\r"))
	b.Until(`document.querySelector("#result").textContent.startsWith("0 of 5 left")`)
	b.Until(`document.querySelector("#form-reset").hidden && !document.querySelector("#result button") &&
		document.querySelector("#form-may").textContent === "."`)
	b.NoProblems()
}

func (s *shop) traffic() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			s.ask(1, fmt.Sprintf("remote_address=198.51.100.%d", i%50), "everyone=all", "path=/api/x")
		}
	}()
	return func() { close(done); <-ended }
}

func (s *shop) textOf(b *browsertest.Browser, element string) (text string) {
	s.t.Helper()
	b.Evaluate(fmt.Sprintf("document.querySelector(%q).textContent", element), &text)
	return text
}
