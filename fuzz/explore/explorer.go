//go:build explore

package explore

import (
	"errors"

	"github.com/weir-go/weir/internal/interleave"
)

// explore tries every schedule of a scenario. If no thread writes the watermark, reads of the watermark are not steps.
func explore(s scenario) (interleave.Report, error) {
	r, err := search(s, true)
	if errors.Is(err, errNotStill) {
		r, err = search(s, false)
	}
	return r, err
}

func search(s scenario, still bool) (interleave.Report, error) {
	w, err := newWorld(s, still)
	if err != nil {
		return interleave.Report{}, err
	}
	return interleave.Explore(w)
}
