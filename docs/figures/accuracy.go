package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/weir-go/weir/engine"
)

// A tally compares the decisions of the sliding window counter and an exact log.
type tally struct {
	requests, clients int
	admitted          int // requests that the counter admitted
	exact             int // requests that the exact log admitted, based on its own history

	// differ is the number of requests that only one of the two admitted. Each of the two decides by its own history.
	differ int

	// These are requests that the counter admitted or refused wrongly. A decision of the counter is wrong if it differs
	// from an exact log of the requests that the counter has admitted so far.
	wronglyAdmitted, wronglyRefused int
	most                            int // the most requests of a client that the counter admitted in one window

	pressed int // requests of clients that the counter or the log refused at least once
}

type measured struct {
	key      engine.Key
	counters exactLog // the requests that the counter admitted
	own      exactLog // the requests that the log admitted
	requests int
	refused  bool
}

func measure(limit int, window time.Duration, requests []request) (tally, error) {
	clients := map[int]*measured{}
	l, clock, err := limiter(engine.SlidingWindow(uint64(limit), window), 10_000)
	if err != nil {
		return tally{}, err
	}
	defer l.Close()
	t := tally{requests: len(requests)}
	for _, r := range requests {
		c := clients[r.client]
		if c == nil {
			c = &measured{key: l.KeyUint64(uint64(r.client)), counters: exactLog{window: int64(window)},
				own: exactLog{window: int64(window)}}
			clients[r.client] = c
		}
		c.requests++
		clock.set(time.Duration(r.at))
		admits := l.AllowKey(c.key)

		exact := c.own.count(r.at) < limit
		if exact {
			c.own.add(r.at)
			t.exact++
		}
		if admits != exact {
			t.differ++
		}
		room := c.counters.count(r.at) < limit
		if admits {
			t.admitted++
			c.counters.add(r.at)
			t.most = max(t.most, c.counters.count(r.at))
		}
		switch {
		case admits && !room:
			t.wronglyAdmitted++
		case !admits && room:
			t.wronglyRefused++
		}
		c.refused = c.refused || !admits || !exact
	}
	t.clients = len(clients)
	for _, c := range clients {
		if c.refused {
			t.pressed += c.requests
		}
	}
	if s := l.Stats(); s.Evictions > 0 {
		return tally{}, fmt.Errorf("%d keys were evicted: the table is too small for this measurement", s.Evictions)
	}
	return t, nil
}

func percent(part, all int) string {
	if part == 0 {
		return "0"
	}
	value := 100 * float64(part) / float64(all)
	// The samples are accurate to three digits, so three digits are written.
	return strconv.FormatFloat(value, 'f', max(0, min(3, 2-int(math.Floor(math.Log10(value))))), 64) + " %"
}

const perLoad = 500_000

var (
	limits = []int{10, 100, 1000}
	loads  = []float64{0.5, 0.8, 1, 1.5, 3}
)

// poissonTable writes the table for one client. The client makes requests at random times.
func poissonTable(out io.Writer) error {
	fmt.Fprintln(out, "| limit in 60 s | load | counter admits | log admits | differ "+
		"| wrongly admitted | wrongly refused | wrong | most in 60 s |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, limit := range limits {
		for i, load := range loads {
			t, err := measure(limit, time.Minute, poisson(perLoad, limit, time.Minute, load, uint64(i)))
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| %d | %gx | %s | %s | %s | %s | %s | %s | %d |\n", limit, load,
				percent(t.admitted, t.requests), percent(t.exact, t.requests), percent(t.differ, t.requests),
				percent(t.wronglyAdmitted, t.requests), percent(t.wronglyRefused, t.requests),
				percent(t.wronglyAdmitted+t.wronglyRefused, t.requests), t.most)
		}
	}
	return nil
}

var logLimits = []struct {
	limit  int
	window time.Duration
	name   string
}{
	{5, 10 * time.Second, "5 in 10 s"},
	{10, 10 * time.Second, "10 in 10 s"},
	{10, 30 * time.Second, "10 in 30 s"},
	{20, 30 * time.Second, "20 in 30 s"},
	{20, time.Minute, "20 in 60 s"},
	{50, time.Hour, "50 in 1 h"},
	{100, time.Hour, "100 in 1 h"},
	{100, day, "100 in 1 day"},
}

func logTable(out io.Writer, requests []request) error {
	fmt.Fprintln(out, "| limit | counter refuses | log refuses | differ | wrongly admitted | wrongly refused "+
		"| wrong, of all | wrong, of pressed clients' | most in a window |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, l := range logLimits {
		t, err := measure(l.limit, l.window, requests)
		if err != nil {
			return err
		}
		wrong := t.wronglyAdmitted + t.wronglyRefused
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %s | %s | %d |\n", l.name, t.requests-t.admitted,
			t.requests-t.exact, t.differ,
			t.wronglyAdmitted, t.wronglyRefused, percent(wrong, t.requests), percent(wrong, max(1, t.pressed)), t.most)
	}
	return nil
}

func printAccuracy(out io.Writer, log string) error {
	fmt.Fprintf(out, "One client that asks at random, %d requests a row:\n\n", perLoad)
	if err := poissonTable(out); err != nil || log == "" {
		return err
	}
	requests, err := readLog(log)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, %d requests:\n\n", log, len(requests))
	return logTable(out, requests)
}
