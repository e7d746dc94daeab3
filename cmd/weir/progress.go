package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
)

// withProgress returns a reader of source that shows on screen how much of it was
// read, as stored, and a function that takes the bar away again. Without a
// terminal, to which nobody looks, it shows nothing.
func withProgress(source *accesslog.Source, screen *os.File) (r io.Reader, done func()) {
	if !term.IsTerminal(int(screen.Fd())) {
		return source, func() {}
	}
	bar := progressbar.NewOptions64(source.Size, // -1, unknown, is a spinner
		progressbar.OptionSetWriter(screen),
		progressbar.OptionSetDescription("replaying"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	// Not io.TeeReader: that would fail with the bar, and a bar that cannot be
	// drawn is no reason to stop.
	reader := progressbar.NewReader(source, bar)
	return &reader, func() { _ = bar.Finish() }
}
