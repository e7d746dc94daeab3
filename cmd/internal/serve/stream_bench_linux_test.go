package serve

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// BenchmarkScanning measures what it costs to read the usage, and to count the text, of streams of 200 events over
// loopback: the processor time of the process with a rule of tokens, less that with a rule that settles what a field of
// the header says. The proxy takes what there is with a plain rule, less that of client and upstream alone. The four
// take turns. Events come one by one, each when the client has the one before, as a model is slower than a proxy, or
// all at once.
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
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	var took [4]time.Duration
	for b.Loop() {
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
			took[i] += processorTime(b) - before
		}
	}
	proxied := float64(took[1] - took[0])
	b.ReportMetric(proxied/float64(b.N)/20/1000, "proxy-µs/stream")
	b.ReportMetric(float64(took[2]-took[1])/float64(b.N)/20/1000, "settle-µs/stream")
	b.ReportMetric(float64(took[3]-took[2])/float64(b.N)/20/1000, "scan-µs/stream")
	b.ReportMetric(100*float64(took[3]-took[2])/proxied, "scan-%")
	b.ReportMetric(0, "ns/op")
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
