package workload

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// accessLogVariable names the access log of the row "access-log", in Common or Combined Log Format, plain or gzip.
const accessLogVariable = "WEIR_ACCESS_LOG"

var accessLog = Row{Name: "access-log", Title: "100/s burst 200, the clients of an access log, sped up", Keys: 1000,
	Draw: Logged, Capacity: 10_000}

// Missing returns why the row cannot be loaded here, or "" if it can.
func (r *Row) Missing() string {
	if r.Draw != Logged {
		return ""
	}
	if _, err := readAccessLog(); err != nil {
		return err.Error()
	}
	return ""
}

type logged struct {
	client string
	at     time.Time
}

// readAccessLog reads, once, the log that the variable names.
var readAccessLog = sync.OnceValues(func() ([]logged, error) {
	path := os.Getenv(accessLogVariable)
	if path == "" {
		return nil, fmt.Errorf("%s names no access log", accessLogVariable)
	}
	return parseAccessLog(path)
})

// parseAccessLog returns the requests of a log in the order of their times. A line has the client as its first word,
// and the time between the first brackets.
func parseAccessLog(path string) ([]logged, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []logged
	text := bufio.NewReader(f)
	if magic, _ := text.Peek(2); string(magic) == "\x1f\x8b" {
		packed, err := gzip.NewReader(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		text = bufio.NewReader(packed)
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		client, rest, _ := strings.Cut(lines.Text(), " ")
		_, rest, _ = strings.Cut(rest, "[")
		text, _, _ := strings.Cut(rest, "]")
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", text)
		if err != nil || client == "" {
			return nil, fmt.Errorf("%s: line %d: want a client and a time in brackets, as Common Log Format has them", path, n)
		}
		all = append(all, logged{client, at})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no requests", path)
	}
	slices.SortStableFunc(all, func(a, b logged) int { return a.at.Compare(b.at) })
	return all, nil
}

// loadAccessLog returns the clients of the log and its requests. Without a log, both are empty, and [Row.Missing]
// returns the reason.
func loadAccessLog() (before, requests *Stream) {
	all, _ := readAccessLog()
	before, requests = newStream(len(all)), newStream(len(all))
	seen := map[string]bool{}
	for _, l := range all {
		if !seen[l.client] {
			seen[l.client] = true
			before.addText(l.client)
		}
		requests.addText(l.client)
		requests.due = append(requests.due, l.at.Sub(all[0].at))
	}
	if len(all) > 0 {
		requests.lap = requests.due[len(all)-1] + time.Second
	}
	return before, requests
}
