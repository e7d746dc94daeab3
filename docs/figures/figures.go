package main

import (
	"time"

	"github.com/weir-go/weir/engine"
)

type figure struct {
	file    string
	title   string
	numbers string
	policy  engine.Policy
	edges   time.Duration // the time between two of the thin lines
}

var figures = []figure{
	{"token-bucket", "Token bucket", "1 a second, burst 10", engine.TokenBucket(engine.PerSecond(1), limit), window},
	{"batch-refill", "Batch refill", "5 every 5 s, burst 10", engine.BatchRefill(limit/2, window/2, limit), window / 2},
	{"fixed-window", "Fixed window", "10 in 10 s, on the clock", engine.FixedWindow(limit, window).Aligned(), window},
	{"sliding-window-counter", "Sliding window counter", "10 in 10 s", engine.SlidingWindow(limit, window), window},
	{"sliding-window-log", "Sliding window log", "10 in 10 s", engine.SlidingLog(limit, window), window},
}
