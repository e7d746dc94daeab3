package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
)

// withProgress shows on screen how much of a log was read, as stored, and returns a function that
// takes the bar away again. Without a terminal, to which nobody looks, it shows nothing.
func withProgress(log *accesslog.Log, screen *os.File) (done func()) {
	if !term.IsTerminal(int(screen.Fd())) {
		return func() {}
	}
	bar := progressbar.NewOptions64(log.Size(), // -1, unknown, is a spinner
		progressbar.OptionSetWriter(screen),
		progressbar.OptionSetDescription("replaying"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	log.Watch(func(read int64) { _ = bar.Set64(read) }) // a bar that cannot be drawn is no reason to stop
	return func() { _ = bar.Finish() }
}
