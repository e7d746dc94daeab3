package admin

import (
	"flag"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/actions"
	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
)

var actionPicture = flag.String("action-picture", "", "a file to write a picture of the page with actions to")

// acting returns a demo whose page can begin actions.
func acting(t *testing.T, access *Access) (*demo, *actions.Table) {
	var table *actions.Table
	d := newDemo(t, KeysFull, 0, func(c *Config, d *demo) {
		table = actions.New(actions.Config{Now: d.time, Log: slog.New(slog.DiscardHandler)})
		c.Access = func() *Access { return access }
		c.Actions = &Actions{
			Table: table, NeedToken: func() bool { return false },
			Client: func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) },
		}
	})
	d.run(t)
	return d, table
}

// TestActionsOnThePage begins, confirms and ends actions on the page, in a browser.
func TestActionsOnThePage(t *testing.T) {
	d, table := acting(t, nil)
	b := browsertest.New(t)
	b.Do(b.Size(1280, 900, "light"), chromedp.Navigate(d.serve(t)))
	b.Until(`!document.querySelector("#actions-box").hidden && !document.querySelector("#act-new").hidden`)
	for range 30 {
		d.ask("/login", "203.0.113.200", "")
	}
	d.tick()

	b.Do(chromedp.Click("#act-new"), chromedp.WaitVisible("#act"))
	b.Set("#act-network", "203.0.113.7/24")
	b.Set("#act-who", "alice")
	b.Set("#act-why", "scans /wp-admin")
	b.Do(chromedp.Click("#act-send"))
	b.Until(`document.querySelector("#act-said").textContent.includes("did you mean 203.0.113.0/24?")`)
	assert.Contains(t, b.Problem(), "422")
	b.Set("#act-network", "203.0.113.7")
	b.Until(`document.querySelector("#act-said").hidden`)
	b.Do(chromedp.Click("#act-send"), chromedp.WaitNotVisible("#act"))
	d.tick()
	b.Until(`document.querySelector("#actions").textContent.includes("203.0.113.7/32alice: scans /wp-admin — 0 requests60 min left")`)

	// A confirmation for a whole rule applies to this action only.
	b.Do(chromedp.Click("#act-new"), chromedp.WaitVisible("#act"))
	b.Set("#act-what", "rule")
	b.Set("#act-rule", "login")
	b.Set("#act-why", "an attack")
	b.Do(chromedp.Click("#act-send"))
	b.Until(`document.querySelector("#act-send").textContent === "Ban all the same"`)
	assert.Contains(t, b.Problem(), "409")
	b.Set("#act-kind", "shadow")
	b.Until(`document.querySelector("#act-send").textContent === "Shadow"`)
	b.Set("#act-kind", "ban")
	b.Do(chromedp.Click("#act-send"))
	b.Until(`document.querySelector("#act-send").textContent === "Ban all the same"`)
	assert.Contains(t, b.Problem(), "409")
	require.Len(t, table.List(), 1)
	b.Do(chromedp.Click("#act-send"), chromedp.WaitNotVisible("#act"))
	require.Len(t, table.List(), 2)

	// The target is a key in the list of refused keys.
	b.Until(`document.querySelector("#refused [aria-label='Ban or exempt ip:203.0.113.200']") !== null`)
	b.Do(chromedp.Click("#refused [aria-label='Ban or exempt ip:203.0.113.200']"), chromedp.WaitVisible("#act"))
	b.Set("#act-why", "guesses passwords")
	b.Do(chromedp.Click("#act-send"), chromedp.WaitNotVisible("#act"))
	require.Len(t, table.List(), 3)
	assert.Equal(t, table.KeyID("ip:203.0.113.200"), table.List()[2].Key)
	d.tick()
	b.Until(`document.querySelector("#actions").textContent.includes("ip:203.0.113.200 of login")`)
	if *actionPicture != "" {
		require.NoError(t, os.WriteFile(*actionPicture+".png", b.Picture(), 0o600))
		b.Do(chromedp.Click("#act-new"), chromedp.WaitVisible("#act"))
		require.NoError(t, os.WriteFile(*actionPicture+"-dialog.png", b.Picture(), 0o600))
		b.Do(b.Size(360, 800, "dark"))
		require.NoError(t, os.WriteFile(*actionPicture+"-phone.png", b.Picture(), 0o600))
		b.Do(chromedp.Click("#act-cancel"))
	}
	for _, width := range []int64{360, 1280} {
		b.Do(b.Size(width, 800, "dark"))
		assert.Zero(t, b.Over(), "%d pixels wide", width)
	}
	b.Do(chromedp.Click("#actions li:nth-child(2) button"))
	b.Until(`document.querySelectorAll("#actions li").length === 2`)
	require.Len(t, table.List(), 2)
	d.now.Add(int64(time.Hour))
	d.tick()
	b.Until(`document.querySelectorAll("#actions li").length === 0 && !document.querySelector("#actions-empty").hidden`)
	b.NoProblems()
}

// TestThePageForThoseWhoLook: with a read-only token, sent by HTTP's Basic scheme, the page has no button that changes
// anything.
func TestThePageForThoseWhoLook(t *testing.T) {
	d, table := acting(t, goodTokens(t))
	_, err := table.Add(actions.Action{
		Kind: actions.Ban, Target: actions.Target{Rule: "login"}, Who: "alice", Why: "an attack",
	}, time.Hour)
	require.NoError(t, err)
	server := httptest.NewServer(d.admin.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { d.admin.Close() })
	b := browsertest.New(t)
	b.Do(b.Size(1280, 900, "light"), chromedp.Navigate("http://eve:"+mayLook+"@"+server.Listener.Addr().String()+"/"))
	b.Until(`document.querySelector("#actions").textContent.includes("the rule loginalice: an attack")`)
	b.Until(`document.querySelector("#link").textContent === "live"`)
	var buttons []string
	b.Evaluate(`[...document.querySelectorAll("#act-new, #actions button, #form-reset")].filter((e) => e.checkVisibility()).map((e) => e.id)`, &buttons)
	assert.Empty(t, buttons)
	b.NoProblems()
}
