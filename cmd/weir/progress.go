package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A bar shows the progress of the work. If the output is not a terminal, the bar is invisible. Errors of the terminal
// are ignored, so that they do not stop the work.
type bar struct{ *progressbar.ProgressBar }

// newBar returns a bar with the given number of steps.
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

// newByteBar returns a bar for the given number of bytes. -1 means that the number is unknown, and then the bar is a
// spinner.
func newByteBar(screen *os.File, bytes int64, description string) bar {
	return newBar(screen, bytes, description,
		progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionUseIECUnits(true))
}

// step moves the bar to the given step. The parameter steps is the number of all steps.
func (b bar) step(step, steps int) {
	b.ChangeMax(steps)
	_ = b.Set(step)
}

// fraction moves the bar to a fraction from 0 to 1. The parameter doing says what is being done.
func (b bar) fraction(doing string, done float64) {
	const whole = 1000
	b.Describe(doing)
	b.step(int(done*(whole-1)), whole) // finish is called at the end
}

// finish removes the bar.
func (b bar) finish() { _ = b.Finish() }
