package replay

import "time"

// A span counts the admitted requests of one key, in the last window and in the fullest one. A window includes its
// start but not its end, so requests exactly a window apart share none. A span keeps the times of one window.
type span struct {
	runs       []same // in the order of time
	held, most uint64 // requests in the last window, and in the fullest window
}

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
	// When append copies the rest, the memory of the requests cut off at the front is freed.
	if s.runs = s.runs[gone:]; len(s.runs) > 0 && s.runs[len(s.runs)-1].at.Equal(now) {
		s.runs[len(s.runs)-1].n++
	} else {
		s.runs = append(s.runs, same{now, 1})
	}
	s.held++
	s.most = max(s.most, s.held)
}
