package serve

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// BenchmarkScanning measures what it costs to read the usage in streams of 200 events over loopback. Each reported
// value is the difference between two processor times:
//
//   - Scanning: a rule that counts tokens, minus the same rule with an encoding that weir cannot read.
//   - Tokens: the rule with this encoding, minus a rule whose cost is in a header field.
//   - Proxy: a rule without tokens, minus the client and the upstream without weir.
//
// The cases take turns, and the medians count. Events are sent one by one, as a model does, or all at once.
func BenchmarkScanning(b *testing.B) {
	b.Run("one by one", func(b *testing.B) { benchmarkScanning(b, true) })
	b.Run("at once", func(b *testing.B) { benchmarkScanning(b, false) })
}

func benchmarkScanning(b *testing.B, paced bool) {
	var events [][]byte
	for i := range 200 {
		text := fmt.Sprintf(" token%d", i*i%1000)
		if i%10 == 0 {
			text = `.\n\n`
		}
		events = append(events, fmt.Appendf(nil, "data: {\"id\":\"c-123456789\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"tiny\","+
			"\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":null}]}\n\n", text))
	}
	next := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			w.Header().Set("Content-Encoding", "unknown")
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Cost", "100")
		flush := http.NewResponseController(w).Flush
		for _, e := range events {
			_, _ = w.Write(e)
			if paced {
				_ = flush()
				<-next
			}
		}
		_, _ = io.WriteString(w, lastBytes+endEvent)
	}))
	b.Cleanup(upstream.Close)
	urls := []string{upstream.URL}
	for _, tokens := range []string{"", ", cost: {estimate: 1000, from: \"header:X-Cost\"}", ", tokens: {abort: delivered}"} {
		file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\nupstream: \""+upstream.URL+"\"\n"+
			"rules: [{name: a, key: global, rate: 1000000/s, burst: 4000000000"+tokens+"}]\n"))
		require.NoError(b, err)
		server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		b.Cleanup(server.stop)
		urls = append(urls, server.URL())
	}
	urls = append(urls[:3], urls[3]+"/unread", urls[3])
	var all [4][]float64 // the additional time of each case over the previous case, in microseconds per stream
	for b.Loop() {
		var took [5]time.Duration
		for i, url := range urls {
			before := processorTime(b)
			for range 20 {
				resp, err := http.Post(url, "application/json", strings.NewReader(`{"stream":true}`))
				require.NoError(b, err)
				n, lines := 0, bufio.NewScanner(resp.Body)
				for lines.Scan() {
					if len(lines.Bytes()) > 0 || n == len(events) {
						continue
					}
					if n++; paced {
						next <- struct{}{}
					}
				}
				require.NoError(b, lines.Err())
				require.Equal(b, len(events), n)
				_ = resp.Body.Close()
			}
			took[i] = processorTime(b) - before
		}
		for i := range all {
			all[i] = append(all[i], float64(took[i+1]-took[i])/20/1000)
		}
	}
	middle := func(i int) float64 { slices.Sort(all[i]); return all[i][len(all[i])/2] }
	proxied := middle(0)
	for i, what := range []string{"proxy", "settle", "estimate", "scan"} {
		b.ReportMetric(middle(i), what+"-µs/stream")
		b.ReportMetric(100*middle(i)/proxied, what+"-%")
	}
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
