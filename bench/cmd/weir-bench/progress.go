package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress returns a function that moves a bar on by one of so many steps, and one that takes it away
// again. Without a terminal, to which nobody looks, it shows nothing.
func progress(steps int, screen *os.File) (step, done func()) {
	if !term.IsTerminal(int(screen.Fd())) {
		return func() {}, func() {}
	}
	bar := progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(screen),
		progressbar.OptionSetDescription("measuring"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	// A bar that cannot be drawn is no reason to stop.
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}
