// Package browsertest drives a real Chromium, for tests of pages.
package browsertest

import (
	"context"
	"fmt"
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
)

// A Browser is one window of a real Chromium.
type Browser struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string // problems in the console
}

// chromium returns the path of the Chromium program. If there is none, the test is skipped, or fails if CI is set.
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

// New opens a window. If there is no Chromium, the test is skipped, or fails if CI is set.
func New(t *testing.T) *Browser {
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.DisableGPU, chromedp.NoSandbox, chromedp.ExecPath(chromium(t)),
		chromedp.WSURLReadTimeout(2*time.Minute))
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	// t.Context would be done before the browser has ended.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	// This version of chromedp reports errors for events that it does not know. The test drops these errors.
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	// Cancel waits until the browser has ended and its directory is gone.
	t.Cleanup(func() { assert.NoError(t, chromedp.Cancel(ctx)) })
	b := &Browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.note)
	return b
}

// note collects errors and warnings of the console, of scripts and of the network from the browser's events.
func (b *Browser) note(event any) {
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

// Do runs the actions, in order.
func (b *Browser) Do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// Until waits until a JavaScript expression is true in the page.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	var got bool
	err := chromedp.Run(b.ctx, chromedp.Poll(expression, &got, chromedp.WithPollingInterval(20*time.Millisecond),
		chromedp.WithPollingTimeout(2*time.Minute)))
	if err != nil {
		var page string
		b.Evaluate(`document.body.innerText`, &page)
		b.t.Fatalf("%s: %v: the page says: %s", expression, err, page)
	}
}

// Evaluate evaluates an expression in the page, and stores the result in value unless value is nil.
func (b *Browser) Evaluate(expression string, value any) {
	b.t.Helper()
	b.Do(chromedp.Evaluate(expression, value))
}

// Set sets the value of a field with the same events that a user would cause.
func (b *Browser) Set(field, value string) {
	b.t.Helper()
	b.Evaluate(fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		field.value = %q;
		for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
	})()`, field, value), nil)
}

// Size returns an action that sets the size of the window and the system's color scheme.
func (b *Browser) Size(width, height int64, scheme string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	}
}

// NoProblems checks that the console has no errors.
func (b *Browser) NoProblems() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.problems)
}

// Problem returns the last error of the console, and removes it. There must be one.
func (b *Browser) Problem() string {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b.t, b.problems)
	last := b.problems[len(b.problems)-1]
	b.problems = b.problems[:len(b.problems)-1]
	return last
}

// Over returns by how many pixels the page is wider than the window.
func (b *Browser) Over() (pixels int) {
	b.t.Helper()
	b.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &pixels)
	return pixels
}

// Picture takes a picture of the window as PNG, after all animations.
func (b *Browser) Picture() (png []byte) {
	b.t.Helper()
	b.Evaluate(`window.begun = undefined`, nil)
	b.Until(`window.begun ??= Date.now(), Date.now() - window.begun > 1500`)
	b.Do(chromedp.CaptureScreenshot(&png))
	return png
}
