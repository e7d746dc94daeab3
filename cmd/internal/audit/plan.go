package audit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/internal/pause"
)

// maxConcurrent is the largest number of requests in progress at a time.
const maxConcurrent = 64

// gaps are the lengths of pauses. After each pause, the audit takes all tokens that have come back.
var gaps = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
	800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond}

// fractions has the pauses of each cycle. They are fractions of the time in which an empty key fills. After the first
// pause, the audit sends a single request. After each later pause, it takes all tokens.
var fractions = [][]float64{{1.2, 0.35}, {1.45, 0.6, 0.55}, {2.15, 0.85, 0.3}, {1.1, 0.5, 0.62}, {1.7, 0.2, 0.9}}

// patterns sends the requests from which the limit is found. The parameter reserve is how many requests it leaves for
// later checks.
func (a *auditor) patterns(ctx context.Context, reserve int) {
	a.progress("a burst")
	_, ok := a.ask(ctx)
	ok = ok && a.sendBurst(ctx)
	if a.burst = len(a.log); !ok {
		return
	}
	if !a.saturate(ctx) {
		return
	}
	for _, gap := range gaps {
		if gap > a.timeLeft()/12 || a.requestsLeft() < reserve {
			break
		}
		a.progress("gaps")
		if !a.sleep(ctx, gap) || !a.drain(ctx, reserve) {
			return
		}
	}
	if !a.awaitReturn(ctx) {
		return
	}
	fillTime := time.Duration(0)
	for i := 0; a.requestsLeft() > reserve+60; i++ {
		a.progress("a lone request, and all that there is")
		if i < 2 {
			result, err := fit.Log(a.requests(), 0)
			if err != nil || !result.Returned {
				return
			}
			fillTime = min(max(fillTimeOf(result.Limit), 300*time.Millisecond), 20*time.Second)
		}
		if i == 0 && !a.poll(ctx, fillTime, reserve) {
			return
		}
		if pauses := fractions[i%len(fractions)]; !a.cycle(ctx, fillTime, pauses, reserve) {
			return
		}
	}
}

// awaitReturn sends a request from time to time until one is admitted, for at most half of the audit's time.
func (a *auditor) awaitReturn(ctx context.Context) bool {
	for !a.hasReturned() {
		a.progress("waiting until something comes back")
		if a.timeLeft() < a.Time/2 || a.requestsLeft() < a.Requests/3 || !a.sleep(ctx, max(a.Time/240, 50*time.Millisecond)) {
			return false
		}
		if _, ok := a.ask(ctx); !ok {
			return false
		}
	}
	return true
}

// hasReturned reports whether a request that was sent after a refusal was admitted, so that a token has come back.
func (a *auditor) hasReturned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var firstRefusal time.Time
	for _, s := range a.log {
		if !s.Allowed && (firstRefusal.IsZero() || s.Done.Before(firstRefusal)) {
			firstRefusal = s.Done
		}
	}
	return slices.ContainsFunc(a.log, func(s Exchange) bool { return s.Allowed && !firstRefusal.IsZero() && s.Sent.After(firstRefusal) })
}

// poll sends a request after each short pause. It ends when five requests are admitted, or after about fillTime, the
// time in which an empty key fills. It reports whether the audit continues.
func (a *auditor) poll(ctx context.Context, fillTime time.Duration, reserve int) bool {
	admitted := 0
	for step := 0; step < 28 && admitted < 5; step++ {
		if d := max(fillTime/24, 10*time.Millisecond); d > a.timeLeft() || a.requestsLeft() < reserve || !a.sleep(ctx, d) {
			return false
		}
		refused, ok := a.ask(ctx)
		if !ok {
			return false
		}
		if !refused {
			admitted++
		}
	}
	return true
}

// saturate sends more requests than are admitted, for some seconds, so that the log shows the rate.
func (a *auditor) saturate(ctx context.Context) bool {
	wave := 8
	for range 25 {
		refused, ok := a.wave(ctx, wave)
		if !ok || !a.sleep(ctx, 70*time.Millisecond) {
			return false
		}
		if refused < wave/4 {
			wave = min(wave*2, 128)
		}
		if a.requestsLeft() < a.Requests/2 || a.timeLeft() < a.Time*3/4 {
			break
		}
	}
	return true
}

// cycle pauses until the key is full and sends one request. It then pauses for each further fraction of the fill time,
// and takes all tokens after each pause. At the end, it polls. It reports whether there is time for another cycle.
func (a *auditor) cycle(ctx context.Context, fillTime time.Duration, pauses []float64, reserve int) bool {
	wait := func(part float64) bool {
		d := time.Duration(float64(fillTime) * part)
		return d < a.timeLeft() && a.sleep(ctx, d)
	}
	if !wait(pauses[0]) {
		return false
	}
	if _, ok := a.ask(ctx); !ok {
		return false
	}
	for _, part := range pauses[1:] {
		if !wait(part) || !a.drain(ctx, reserve) {
			return false
		}
	}
	return a.poll(ctx, fillTime, reserve)
}

// fillTimeOf returns how long it takes until an empty key is full.
func fillTimeOf(l fit.Limit) time.Duration {
	return time.Duration(float64(l.Per) * max(float64(l.Capacity(l.Kind))/float64(l.Tokens), 1))
}

func (a *auditor) sendBurst(ctx context.Context) bool {
	for wave := 8; ; wave = min(wave*2, 512) {
		refused, ok := a.wave(ctx, min(wave, a.requestsLeft()*2/3))
		if !ok || refused > 0 {
			return ok
		}
		if a.requestsLeft() < 30 {
			return false
		}
	}
}

func (a *auditor) wave(ctx context.Context, n int) (refused int, ok bool) {
	var workers sync.WaitGroup
	var mu sync.Mutex
	remaining := n
	ok = n > 0
	for range min(n, maxConcurrent) {
		workers.Go(func() {
			for {
				mu.Lock()
				remaining--
				hasWork := remaining >= 0 && ok
				mu.Unlock()
				if !hasWork {
					return
				}
				isRefused, isAnswered := a.ask(ctx)
				mu.Lock()
				if ok = ok && isAnswered; isRefused {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return refused, ok
}

// drain takes all available tokens. It sends several requests at once if tokens come back faster than answers.
func (a *auditor) drain(ctx context.Context, reserve int) bool {
	start := time.Now()
	for i, wave := 0, 16; a.requestsLeft() > reserve; i++ {
		if i >= 8 && time.Since(start) > time.Duration(i)*3*time.Millisecond { // single requests would take too long
			refused, ok := a.wave(ctx, min(wave, a.requestsLeft()))
			if !ok || refused > 0 {
				return ok
			}
			wave = min(wave*2, maxConcurrent)
			continue
		}
		refused, ok := a.ask(ctx)
		if !ok || refused {
			return ok
		}
	}
	return true
}

// sleep waits, and reports whether the audit continues.
func (a *auditor) sleep(ctx context.Context, d time.Duration) bool { return pause.For(ctx, d) == nil }
