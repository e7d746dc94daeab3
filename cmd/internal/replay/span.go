package replay

import "time"

// A span counts the admitted requests of one key: those in the last window, and the largest number in any window. A
// window includes its start and not its end. So if two requests are exactly the length of a window apart, no window has
// both. A span keeps the times of one window.
type span struct {
	runs       []same // in the order of time
	held, most uint64 // requests in the last window, and in the fullest window
}

// same is a number of requests with the same time.
type same struct {
	at time.Time
	n  uint64
}

// add counts an admitted request. The times must not decrease.
func (s *span) add(now time.Time, window time.Duration) {
	gone := 0
	for gone < len(s.runs) && now.Sub(s.runs[gone].at) >= window {
		s.held -= s.runs[gone].n
		gone++
	}
	// The memory of the requests that are cut off at the front is freed when append copies the rest.
	if s.runs = s.runs[gone:]; len(s.runs) > 0 && s.runs[len(s.runs)-1].at.Equal(now) {
		s.runs[len(s.runs)-1].n++
	} else {
		s.runs = append(s.runs, same{now, 1})
	}
	s.held++
	s.most = max(s.most, s.held)
}
