package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// A request has the number of its client and its time, in nanoseconds since the start.
type request struct {
	client int
	at     int64
}

func poisson(n, limit int, window time.Duration, load float64, seed uint64) []request {
	random := rand.New(rand.NewPCG(seed, uint64(limit)))
	mean := float64(window) / (load * float64(limit))
	requests, at := make([]request, n), int64(0)
	for i := range requests {
		at += int64(random.ExpFloat64() * mean)
		requests[i] = request{0, at}
	}
	return requests
}

// readLog returns the requests of an access log in common or combined format, plain or gzip, in the order of their
// times. The first line is in day 0, so that requests keep their distance to the edges of windows.
func readLog(path string) ([]request, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return nil, err
		}
	}
	var requests []request
	var first time.Time
	clients := map[string]int{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), " ")
		_, rest, found := strings.Cut(lines.Text(), " [")
		stamp, _, closed := strings.Cut(rest, "]")
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
		if !found || !closed || err != nil {
			return nil, fmt.Errorf("%s: %q is not a line of an access log", path, lines.Text())
		}
		if _, known := clients[name]; !known {
			clients[name] = len(clients)
		}
		if first.IsZero() {
			first = at.Truncate(day)
		}
		requests = append(requests, request{clients[name], int64(at.Sub(first))})
	}
	slices.SortStableFunc(requests, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	return requests, lines.Err()
}
