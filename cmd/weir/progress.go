package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A bar shows on a terminal how far the work is. It ignores errors of the terminal, because they must not stop the
// work.
type bar struct{ *progressbar.ProgressBar }

func newBar(screen *os.File, steps int64, description string, options ...progressbar.Option) bar {
	return bar{progressbar.NewOptions64(steps, append([]progressbar.Option{
		progressbar.OptionSetWriter(screen),
		progressbar.OptionSetVisibility(term.IsTerminal(int(screen.Fd()))),
		progressbar.OptionSetDescription(description),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionClearOnFinish(),
	}, options...)...)}
}

// newByteBar returns a bar for a number of bytes. For -1 the number is unknown, and the bar is a spinner.
func newByteBar(screen *os.File, bytes int64, description string) bar {
	return newBar(screen, bytes, description,
		progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionUseIECUnits(true))
}

func (b bar) step(step, steps int) {
	b.ChangeMax(steps)
	_ = b.Set(step)
}

// fraction moves the bar to a fraction from 0 to 1. The parameter activity says what the program is doing.
func (b bar) fraction(activity string, done float64) {
	const total = 1000
	b.Describe(activity)
	b.step(int(done*(total-1)), total) // finish is called at the end
}

func (b bar) finish() { _ = b.Finish() }
