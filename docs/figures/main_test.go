package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

func TestPicturesAreCurrent(t *testing.T) {
	drawn := map[string]bool{}
	for file, draw := range pictures() {
		var svg bytes.Buffer
		require.NoError(t, draw(&svg))
		committed, err := os.ReadFile(file + ".svg")
		require.NoError(t, err, "go run ./docs/figures")
		assert.True(t, bytes.Equal(svg.Bytes(), committed), "%s.svg is not what the program draws: go run ./docs/figures", file)
		drawn[file+".svg"] = true
	}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".svg") {
			assert.True(t, drawn[e.Name()], "%s: the program draws no such picture", e.Name())
		}
	}
}

// run must write every picture.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(nil, false, false, "", dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, len(figures)+len(stories))
	assert.Error(t, run(nil, false, false, "", dir+"/no/such/folder"))
}

// The pictures contain these numbers, and the document repeats them.
func TestWorstMomentOfEachPicture(t *testing.T) {
	want := map[string]step{
		"token-bucket":           {18*time.Second + 353333333, 19},
		"batch-refill":           {16*time.Second + 353333333, 20},
		"fixed-window":           {10760 * time.Millisecond, 20},
		"sliding-window-counter": {19020 * time.Millisecond, 20},
		"sliding-window-log":     {9960 * time.Millisecond, 10},
	}
	require.Len(t, figures, len(want))
	for _, f := range figures {
		answers, err := play(f.policy, load())
		require.NoError(t, err)
		assert.Equal(t, want[f.file], worst(curve(answers)), f.file)
	}
}

// The pictures of a debt and of holds, and the document, show these numbers.
func TestStories(t *testing.T) {
	d, err := tellDebt()
	require.NoError(t, err)
	assert.Equal(t, 16*time.Second, d.passes-chargeAt)
	lowest := 0.0
	for _, p := range d.tokens {
		lowest = min(lowest, p.Y)
	}
	assert.InDelta(t, limit-charged, lowest, 1e-9, "it was full but for the two requests before, which are back: one a second")

	fixed, err := tellHold(engine.FixedWindow(budget, minute).Aligned())
	require.NoError(t, err)
	assert.InDelta(t, 35, fixed[len(fixed)-1].Y, 0, "30 and 5")
	log, err := tellHold(engine.SlidingLog(budget, minute))
	require.NoError(t, err)
	highest := 0.0
	for _, p := range log {
		highest = max(highest, p.Y)
	}
	assert.InDelta(t, 100, highest, 0, "70 and 30")
	assert.InDelta(t, 35, log[len(log)-1].Y, 0, "all that was held has left")
}

// The document contains each picture with its text, and every table as the program prints it.
func TestDocumentIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../algorithms.md")
	require.NoError(t, err)
	document := string(text)
	for file := range pictures() {
		assert.Contains(t, document, "](figures/"+file+".svg)", "a picture")
	}
	contains := func(table string) {
		t.Helper()
		for line := range strings.Lines(table) {
			assert.Contains(t, document, line, "what the program prints is not in docs/algorithms.md")
		}
	}
	var b bytes.Buffer
	require.NoError(t, printNumbers(&b))
	contains(b.String())

	if testing.Short() {
		return
	}
	b.Reset()
	require.NoError(t, poissonTable(&b))
	contains(b.String())

	if path := os.Getenv("WEIR_ACCESS_LOG"); path != "" {
		b.Reset()
		requests, err := readLog(path)
		require.NoError(t, err)
		require.NoError(t, logTable(&b, requests))
		contains(b.String())
	}
}

// taken has a limiter, and the times at which it granted single tokens.
type taken struct {
	t     *testing.T
	l     *engine.Limiter
	clock *manualClock
	times []time.Duration
}

func newTaken(t *testing.T, p engine.Policy) *taken {
	l, clock, err := limiter(p, 1)
	require.NoError(t, err, "%v", p)
	t.Cleanup(func() { l.Close() })
	return &taken{t: t, l: l, clock: clock}
}

// ask requests n single tokens at a time, the argument at. It returns how many tokens were granted.
func (k *taken) ask(at time.Duration, n int) (granted int) {
	k.clock.set(at)
	for range n {
		if k.l.Allow("key") {
			granted++
			k.times = append(k.times, at)
		}
	}
	return granted
}

// most returns the largest number of tokens granted in an interval shorter than window. A log with this window would
// count these tokens together.
func (k *taken) most(window time.Duration) int {
	most, first := 0, 0
	for i, at := range k.times {
		for at-k.times[first] >= window {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// Each algorithm can admit as many requests in a window as the document says.
func TestWorstIsReached(t *testing.T) {
	const second, ns = time.Second, time.Nanosecond

	k := newTaken(t, engine.TokenBucket(engine.PerSecond(1), 10))
	require.Equal(t, 10, k.ask(0, 11))
	for n := time.Duration(1); n <= 10; n++ {
		require.Zero(t, k.ask(n*second-ns, 1))
		require.Equal(t, 1, k.ask(n*second, 2))
	}
	assert.Len(t, k.times, 20, "burst + rate * 10 s, with both ends")
	assert.Equal(t, 19, k.most(10*second), "the first have just left when the last one comes")

	k = newTaken(t, engine.BatchRefill(5, 5*second, 10))
	require.Equal(t, 10, k.ask(5*second-ns, 11))
	require.Equal(t, 5, k.ask(5*second, 11))
	require.Equal(t, 5, k.ask(10*second, 11))
	assert.Equal(t, 20, k.most(10*second), "burst + 2 refills of 5")

	k = newTaken(t, engine.FixedWindow(10, 10*second).Aligned())
	require.Equal(t, 10, k.ask(10*second-ns, 11))
	require.Equal(t, 10, k.ask(10*second, 11))
	assert.Equal(t, 20, k.most(2*ns), "twice the limit in two nanoseconds")

	k = newTaken(t, engine.FixedWindow(10, 10*second))
	require.Equal(t, 1, k.ask(3*second, 1))
	require.Equal(t, 9, k.ask(13*second-ns, 10))
	require.Equal(t, 10, k.ask(13*second, 11))
	assert.Equal(t, 19, k.most(2*ns), "one was needed to begin the window")

	k = newTaken(t, engine.SlidingLog(10, 10*second))
	require.Equal(t, 10, k.ask(5*second, 11))
	require.Zero(t, k.ask(15*second-ns, 1))
	require.Equal(t, 10, k.ask(15*second, 11))
	assert.Equal(t, 10, k.most(10*second))
}

// No algorithm admits more requests than the document says, even at the edges of windows.
func TestWorstIsNotExceeded(t *testing.T) {
	const limit, window = 6, 60 * time.Millisecond
	perToken := window / limit
	bounds := []struct {
		policy engine.Policy
		// within returns the largest number of tokens that may be granted between the times first and last, both
		// included.
		within func(first, last time.Duration) int
	}{
		{engine.TokenBucket(engine.Per(limit, window), limit), func(first, last time.Duration) int {
			return limit + int((last-first)/perToken)
		}},
		{engine.BatchRefill(limit/2, window/2, limit), func(first, last time.Duration) int {
			return limit + limit/2*int(last/(window/2)-first/(window/2))
		}},
		{engine.FixedWindow(limit, window).Aligned(), func(first, last time.Duration) int {
			return limit * int(last/window-first/window+1)
		}},
		{engine.FixedWindow(limit, window), func(first, last time.Duration) int {
			return limit*(2+int((last-first)/window)) - 1 // the request that began the first window came before first
		}},
		{engine.SlidingWindow(limit, window), func(first, last time.Duration) int {
			return limit + int((limit*(last-first)+window-1)/window)
		}},
		{engine.SlidingLog(limit, window), func(first, last time.Duration) int {
			return limit * (1 + int((last-first)/window))
		}},
	}
	for _, b := range bounds {
		reached := false
		for seed := range uint64(100) {
			random := rand.New(rand.NewPCG(seed, 1))
			k := newTaken(t, b.policy)
			for at := time.Duration(0); at < 6*window; {
				k.ask(at, 1+random.IntN(2*limit))
				switch random.IntN(4) {
				case 0: // move to an edge, or to just before it
					at = max(at, (at/window+1)*window-time.Duration(random.IntN(3)))
				case 1: // move to the end of a window that began here
					at += window - time.Duration(random.IntN(2))
				case 2:
					at += time.Duration(1 + random.IntN(2))
				default:
					at += time.Duration(random.Int64N(int64(window / 2)))
				}
			}
			for i, first := range k.times {
				for j := i; j < len(k.times); j++ {
					most, got := b.within(first, k.times[j]), j-i+1
					if got > most {
						require.LessOrEqual(t, got, most, "%v, seed %d: from %v to %v", b.policy, seed, first, k.times[j])
					}
					reached = reached || got == most && most > limit
				}
			}
		}
		assert.True(t, reached, "%v: the bound was not reached", b.policy)
	}
}

// With batches as large as the burst, batch refill decides like an aligned fixed window.
func TestBatchOfTheWholeBurstIsAFixedWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	batch := newTaken(t, engine.BatchRefill(limit, window, limit))
	fixed := newTaken(t, engine.FixedWindow(limit, window).Aligned())
	for at := time.Duration(0); at < 100*window; at += time.Duration(random.Int64N(int64(window))) {
		n := random.IntN(2 * limit)
		require.Equal(t, fixed.ask(at, n), batch.ask(at, n), "at %v", at)
	}
}
