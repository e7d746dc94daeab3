package main

// An exactLog has the times of a key's admitted requests. The figures compare the engine with it, so it shares no code
// with the engine. A request leaves the window when the request is exactly as old as the window is long.
type exactLog struct {
	window int64
	times  []int64 // the oldest first
	oldest int     // index of the first time that is still in the window
}

func (l *exactLog) count(now int64) int {
	for l.oldest < len(l.times) && now-l.times[l.oldest] >= l.window {
		l.oldest++
	}
	if l.oldest > 1024 && l.oldest > len(l.times)/2 {
		l.times, l.oldest = append(l.times[:0], l.times[l.oldest:]...), 0
	}
	return len(l.times) - l.oldest
}

func (l *exactLog) add(now int64) { l.times = append(l.times, now) }
