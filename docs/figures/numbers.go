package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-go/weir/engine"
)

const day = 24 * time.Hour

func printNumbers(out io.Writer) error {
	if err := memoryTable(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := limitTable(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return answerTable(out)
}

// memoryTable writes the bytes per key of a table that has the number of keys for which it is made.
func memoryTable(out io.Writer) error {
	const keys = 40_000 // any other number gives the same results, up to rounding
	fmt.Fprintln(out, "| policy | bytes a key |")
	fmt.Fprintln(out, "|---|---|")
	for _, p := range []engine.Policy{
		engine.TokenBucket(engine.PerSecond(100), 200),
		engine.BatchRefill(10, time.Second, 100),
		engine.FixedWindow(100, time.Minute),
		engine.SlidingWindow(100, time.Minute),
		engine.SlidingLog(2, time.Minute),
		engine.SlidingLog(10, time.Minute),
		engine.SlidingLog(100, time.Minute),
	} {
		l, err := engine.New(p, engine.MaxKeys(keys), engine.Shards(1))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %v | %.0f |\n", p, float64(l.Stats().Bytes)/keys)
		l.Close()
	}
	return nil
}

func limitTable(out io.Writer) error {
	windows := []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, day, 365 * day}
	names := []string{"1 µs", "1 ms", "1 s", "1 min", "1 h", "1 day", "365 days"}
	kinds := []struct {
		name   string
		policy func(limit uint64, window time.Duration) engine.Policy
	}{
		{"fixed window", engine.FixedWindow},
		{"fixed window, aligned", func(limit uint64, window time.Duration) engine.Policy {
			return engine.FixedWindow(limit, window).Aligned()
		}},
		{"sliding window counter", engine.SlidingWindow},
		{"sliding window log", engine.SlidingLog},
	}
	fmt.Fprint(out, "| window |")
	for _, k := range kinds {
		fmt.Fprintf(out, " %s |", k.name)
	}
	fmt.Fprintln(out, "\n|---|---|---|---|---|")
	for i, window := range windows {
		fmt.Fprintf(out, "| %s |", names[i])
		for _, k := range kinds {
			fmt.Fprintf(out, " %d |", highest(func(limit uint64) bool { return accepted(k.policy(limit, window)) }))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// highest returns the largest number, up to 2^33, for which the function ok returns true. The function ok must also
// return true for all smaller numbers.
func highest(ok func(uint64) bool) uint64 {
	low, high := uint64(0), uint64(1)<<33
	for low < high {
		if middle := (low + high + 1) / 2; ok(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

func accepted(p engine.Policy) bool {
	l, err := engine.New(p, engine.MaxKeys(1))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// answerTable writes the answers to a client that asks for too many tokens. The last two columns have the tokens left
// if tokens are given back or the limit is halved instead.
func answerTable(out io.Writer) error {
	fmt.Fprintln(out, "| policy | Remaining | RetryAfter | ResetAfter "+
		"| left after Refund(3) | left after SetPolicy with 5 for 10 |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	for _, policy := range []func(limit uint64) engine.Policy{
		func(limit uint64) engine.Policy { return engine.TokenBucket(engine.PerSecond(1), limit) },
		func(limit uint64) engine.Policy { return engine.BatchRefill(5, 5*time.Second, limit) },
		func(limit uint64) engine.Policy { return engine.FixedWindow(limit, window).Aligned() },
		func(limit uint64) engine.Policy { return engine.FixedWindow(limit, window) },
		func(limit uint64) engine.Policy { return engine.SlidingWindow(limit, window) },
		func(limit uint64) engine.Policy { return engine.SlidingLog(limit, window) },
	} {
		row, err := answerRow(policy)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, row)
	}
	return nil
}

func answerRow(policy func(limit uint64) engine.Policy) (string, error) {
	l, clock, err := limiter(policy(limit), 3)
	if err != nil {
		return "", err
	}
	defer l.Close()
	clock.set(4 * time.Second)
	l.Take("asks", 8)
	l.Take("is refunded", 8)
	clock.set(7 * time.Second)
	asked := l.Take("asks", 8)
	l.Refund(l.Key("is refunded"), 3)
	refunded := l.Peek(l.Key("is refunded"), 1)
	if err := l.SetPolicy(policy(limit / 2)); err != nil {
		return "", err
	}
	changed := l.Peek(l.Key("asks"), 1)
	return fmt.Sprintf("| %v | %d | %v | %v | %d | %d |", policy(limit), asked.Remaining, asked.RetryAfter,
		asked.ResetAfter, refunded.Remaining, changed.Remaining), nil
}
