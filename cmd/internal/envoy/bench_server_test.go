//go:build unix

package envoy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// nothing is a service that does not read its request. A measurement of it shows the cost of the protocol.
type nothing struct {
	rlsv3.UnimplementedRateLimitServiceServer
}

func (nothing) ShouldRateLimit(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK,
		Statuses: []*rlsv3.RateLimitResponse_DescriptorStatus{{Code: rlsv3.RateLimitResponse_OK}}}, nil
}

const serverVariable = "WEIR_BENCH_SERVER"

// TestMain runs the server of BenchmarkServer instead of the tests if serverVariable is set.
func TestMain(m *testing.M) {
	if name := os.Getenv(serverVariable); name != "" {
		if err := benchServer(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// benchServer runs a service and prints its address. Then, for each line that it reads, it prints the processor time
// that it has used so far, in nanoseconds.
func benchServer(name string) error {
	var service rlsv3.RateLimitServiceServer = nothing{}
	if name == "weir" {
		s, err := benchmarked()
		if err != nil {
			return err
		}
		defer s.Close()
		service = s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	rlsv3.RegisterRateLimitServiceServer(server, service)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	fmt.Println(l.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return err
		}
		fmt.Println(used.Utime.Nano() + used.Stime.Nano())
	}
	return nil
}

type benchProcess struct {
	b       *testing.B
	in      func(line string)
	out     *bufio.Scanner
	address string
}

func startServer(b *testing.B, name string) *benchProcess {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), serverVariable+"="+name, fmt.Sprint("GOMAXPROCS=", runtime.GOMAXPROCS(0)))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = command.Wait() })
	p := &benchProcess{b: b, in: func(line string) { fmt.Fprintln(in, line) }, out: bufio.NewScanner(out)}
	p.address = p.line()
	return p
}

func (p *benchProcess) line() string {
	if !p.out.Scan() {
		p.b.Fatal("the server has ended")
	}
	return p.out.Text()
}

func (p *benchProcess) used() time.Duration {
	p.in("")
	n, err := strconv.ParseInt(p.line(), 10, 64)
	if err != nil {
		p.b.Fatal(err)
	}
	return time.Duration(n)
}

// BenchmarkServer measures weir's service and a service that does nothing. Each runs in a separate process with the
// same number of processors. server-ns/op is the server's processor time per request. p50-ns and p99-ns are how long a
// client waits, with 16 concurrent requests per processor. decided/op is 1 if every answer came from a counter.
func BenchmarkServer(b *testing.B) {
	for _, name := range []string{"nothing", "weir"} {
		b.Run("server="+name, func(b *testing.B) {
			server := startServer(b, name)
			connection, err := grpc.NewClient(server.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer connection.Close()
			client := rlsv3.NewRateLimitServiceClient(connection)
			if _, err := client.ShouldRateLimit(context.Background(), question("five", "x")); err != nil {
				b.Fatal(err)
			}
			var decided, workers atomic.Int64
			var mu sync.Mutex
			var waited []time.Duration
			b.SetParallelism(16)
			before := server.used()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				request := question("five", fmt.Sprint(workers.Add(1)))
				var own []time.Duration
				for pb.Next() {
					asked := time.Now()
					response, err := client.ShouldRateLimit(context.Background(), request)
					if err != nil {
						b.Error(err)
						return
					}
					own = append(own, time.Since(asked))
					if response.GetStatuses()[0].GetCurrentLimit() != nil {
						decided.Add(1)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				waited = append(waited, own...)
			})
			b.StopTimer()
			used := server.used() - before
			slices.Sort(waited)
			b.ReportMetric(float64(used)/float64(b.N), "server-ns/op")
			b.ReportMetric(float64(waited[len(waited)/2]), "p50-ns")
			b.ReportMetric(float64(waited[len(waited)*99/100]), "p99-ns")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/float64(runtime.GOMAXPROCS(0)), "req/s/core")
			got := float64(decided.Load()) / float64(b.N)
			b.ReportMetric(got, "decided/op")
			if want := strings.Count(name, "weir"); got != float64(want) {
				b.Errorf("%v decisions a request, want %d", got, want)
			}
		})
	}
}
