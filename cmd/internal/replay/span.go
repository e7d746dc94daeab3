package replay

import "time"

// A span counts the admitted requests of one key. It has two counts: for the last window, and for the window with the
// most requests. A window includes its start but not its end, so two requests exactly a window apart are never in the
// same window. A span keeps the times of one window.
type span struct {
	runs             []instantCount // in the order of time
	current, fullest uint64         // requests in the last window, and in the fullest window
}

type instantCount struct {
	at time.Time
	n  uint64
}

// add counts an admitted request. The times must not decrease.
func (s *span) add(now time.Time, window time.Duration) {
	expired := 0
	for expired < len(s.runs) && now.Sub(s.runs[expired].at) >= window {
		s.current -= s.runs[expired].n
		expired++
	}
	// When append needs to copy the rest, it frees the memory of the requests that are cut off here.
	if s.runs = s.runs[expired:]; len(s.runs) > 0 && s.runs[len(s.runs)-1].at.Equal(now) {
		s.runs[len(s.runs)-1].n++
	} else {
		s.runs = append(s.runs, instantCount{now, 1})
	}
	s.current++
	s.fullest = max(s.fullest, s.current)
}
