package main

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

const (
	limit  = 10
	window = 10 * time.Second
	// The client sends fast between edge - rush and edge + rush.
	edge = 10 * time.Second
	rush = 800 * time.Millisecond
	end  = 25 * time.Second
)

// start is time 0 of the pictures and measurements. Here, all windows have an edge at this time.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// load returns the times of the requests. The client asks for the complete limit just before the edge of a window, and
// again just after the edge. After that, it asks for three times the limit.
func load() []time.Duration {
	var asks []time.Duration
	for n := range time.Duration(2 * limit) {
		asks = append(asks, edge-rush+(2*n+1)*rush/(2*limit))
	}
	for n := time.Duration(3); ; n++ {
		at := edge + 20*time.Millisecond + n*window/(3*limit)
		if at >= end {
			return asks
		}
		asks = append(asks, at)
	}
}

// An answer is a request with the engine's decision about it.
type answer struct {
	at       time.Duration
	admitted bool
}

type manualClock struct{ since atomic.Int64 }

func (c *manualClock) now() time.Time { return start.Add(time.Duration(c.since.Load())) }

func (c *manualClock) set(since time.Duration) { c.since.Store(int64(since)) }

func limiter(p engine.Policy, keys int) (*engine.Limiter, *manualClock, error) {
	clock := new(manualClock)
	l, err := engine.New(p, engine.MaxKeys(keys), engine.ClockFunc(clock.now))
	return l, clock, err
}

func play(p engine.Policy, asks []time.Duration) ([]answer, error) {
	l, clock, err := limiter(p, 1)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	answers := make([]answer, len(asks))
	for i, at := range asks {
		clock.set(at)
		answers[i] = answer{at, l.Allow("client")}
	}
	return answers, nil
}

// A step is a change of the number of requests admitted in the last window.
type step struct {
	at    time.Duration
	count int
}

// curve returns the steps of the number of requests admitted in the last window. A request leaves the window when the
// request is exactly as old as the window is long.
func curve(answers []answer) []step {
	var comes []time.Duration
	for _, a := range answers {
		if a.admitted {
			comes = append(comes, a.at)
		}
	}
	steps := []step{{0, 0}}
	for come, gone := 0, 0; come < len(comes); {
		at := comes[come]
		if gone < come && comes[gone]+window <= at {
			at = comes[gone] + window
			gone++
		} else {
			come++
		}
		if last := &steps[len(steps)-1]; last.at == at {
			last.count = come - gone
			continue
		}
		steps = append(steps, step{at, come - gone})
	}
	return steps
}

func worst(steps []step) step {
	high := steps[0]
	for _, s := range steps {
		if s.count > high.count {
			high = s
		}
	}
	return high
}
