package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// newBar returns a progress bar of some steps. If screen is not a terminal, the bar is invisible.
func newBar(steps int, screen *os.File) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(screen),
		progressbar.OptionSetVisibility(term.IsTerminal(int(screen.Fd()))),
		progressbar.OptionSetDescription("measuring"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}
