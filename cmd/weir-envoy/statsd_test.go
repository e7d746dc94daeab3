package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStatsd: packets report increases of counters, the number of calls, and their durations.
func TestStatsd(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r := startStatsd(t, "udp", l.LocalAddr().(*net.UDPAddr).Port)
	sums := map[string]int{}
	buffer := make([]byte, 2048)
	until(t, "all hits have arrived", func() bool {
		require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
		n, _, err := l.ReadFrom(buffer)
		require.NoError(t, err)
		for line := range strings.Lines(string(buffer[:n])) {
			addLine(t, sums, line)
		}
		return sums["ratelimit.service.rate_limit.d.day.total_hits.__zone=a"] == 4 &&
			sums["ratelimit.service.rate_limit.d.day.over_limit.__zone=a"] == 1 &&
			sums["ratelimit_server.ShouldRateLimit.total_requests.__zone=a"] == 4 &&
			sums["ratelimit_server.ShouldRateLimit.response_time.__zone=a"] == 4
	})
	require.NoError(t, r.end())
}

// TestStatsdByTCP: by default, statistics are sent over TCP. If the connection is closed, they are sent over a new one.
func TestStatsdByTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r := startStatsd(t, "tcp", l.Addr().(*net.TCPAddr).Port)
	sums := map[string]int{}
	receive := func(name string, want int) {
		connection, err := l.Accept()
		require.NoError(t, err)
		defer connection.Close()
		lines := bufio.NewScanner(connection)
		for sums[name] < want && lines.Scan() {
			addLine(t, sums, lines.Text())
		}
	}
	receive("ratelimit.service.rate_limit.d.day.total_hits.__zone=a", 4)
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() { // hits are lost if they are sent before the close is noticed, so new hits must follow
		for ctx.Err() == nil {
			_, _ = r.rls.ShouldRateLimit(ctx, request("d", "new", "x", 1))
		}
	})
	receive("ratelimit.service.rate_limit.d.new.total_hits.__zone=a", 1)
	cancel()
	asking.Wait()
}

func startStatsd(t *testing.T, protocol string, port int) *running {
	t.Helper()
	rules := file + "  - {key: new, rate_limit: {unit: year, requests_per_unit: 3}}\n"
	r := start(t, nil, "--runtime-root="+write(t, map[string]string{"a.yaml": rules}), "--extra-tags=zone:a",
		"--statsd-host=127.0.0.1", fmt.Sprintf("--statsd-port=%d", port), "--statsd-protocol="+protocol,
		"--stats-flush-interval=10ms")
	for range 4 {
		r.left("day", "x")
	}
	return r
}

func addLine(t *testing.T, sums map[string]int, line string) {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
	if took, isTime := strings.CutSuffix(rest, "|ms"); isTime {
		milliseconds, err := strconv.ParseFloat(took, 64)
		require.NoError(t, err, "%s", line)
		require.Positive(t, milliseconds)
		sums[name]++
		return
	}
	var grown int
	_, err := fmt.Sscanf(rest, "%d|c", &grown)
	require.NoError(t, err, "%s", line)
	sums[name] += grown
}
