package replay

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/reference"
)

// exactReport applies a limit to a log with exact rational arithmetic. It uses its own simple parser, and a map of
// buckets of package reference, so that its correctness is easy to see.
func exactReport(t *testing.T, log string, tokens float64, period time.Duration, burst uint64) *Report {
	t.Helper()
	type client struct {
		bucket *reference.TokenBucket
		key    Key
	}
	clients := map[string]*client{}
	report := &Report{}
	type request struct {
		at   time.Time
		host string
	}
	var requests []request
	for _, line := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		host, rest, _ := strings.Cut(line, " - - [")
		stamp, err := time.Parse("02/Jan/2006:15:04:05 -0700", rest[:26])
		require.NoError(t, err)
		requests = append(requests, request{stamp, host})
	}
	slices.SortStableFunc(requests, func(a, b request) int { return a.at.Compare(b.at) })
	for _, r := range requests {
		host := r.host
		c := clients[host]
		if c == nil {
			c = &client{bucket: reference.NewTokenBucket(tokens, period, burst), key: Key{Name: host}}
			clients[host] = c
		}
		report.Requests++
		c.key.Requests++
		if c.bucket.Take(r.at.UnixNano(), 1) {
			report.Allowed++
		} else {
			report.Refused++
			c.key.Refused++
		}
	}
	report.Keys = uint64(len(clients))
	for _, c := range clients {
		if c.key.Refused > 0 {
			report.RefusedKeys = append(report.RefusedKeys, c.key)
		}
	}
	return report
}

func readLog(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	buffered := bufio.NewReader(file)
	var r io.Reader = buffered
	if strings.HasSuffix(path, ".gz") {
		r, err = gzip.NewReader(buffered)
		require.NoError(t, err)
	}
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}
