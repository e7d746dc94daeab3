package replay

import "time"

// A span counts how many tokens one key got in the last window, and the most that it got in any window. A window
// includes its start and not its end, so two requests exactly one length apart are not in the same window. A span keeps
// the times of one window.
type span struct {
	runs       []same // in the order of time
	held, most uint64 // requests in the last window, and in the fullest
}

// same is requests of one time.
type same struct {
	at time.Time
	n  uint64
}

// add counts an admitted request. Times never decrease.
func (s *span) add(now time.Time, window time.Duration) {
	gone := 0
	for gone < len(s.runs) && now.Sub(s.runs[gone].at) >= window {
		s.held -= s.runs[gone].n
		gone++
	}
	// The memory of the removed front is freed when append moves the rest.
	if s.runs = s.runs[gone:]; len(s.runs) > 0 && s.runs[len(s.runs)-1].at.Equal(now) {
		s.runs[len(s.runs)-1].n++
	} else {
		s.runs = append(s.runs, same{now, 1})
	}
	s.held++
	s.most = max(s.most, s.held)
}
