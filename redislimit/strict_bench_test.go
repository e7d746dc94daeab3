//go:build unix

package redislimit_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// BenchmarkStrict measures the processor time of a strict request, on the server and in this process. Compare only
// figures of the same run.
func BenchmarkStrict(b *testing.B) {
	server := redistest.Start(b)
	plain, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	require.NoError(b, err)
	b.Cleanup(plain.Close)
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = "key " + strconv.Itoa(i)
	}
	run := func(name string, request func(key string) error) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(64)
			b.ReportAllocs()
			var number atomic.Int64
			ofServer, ofClient := serverTime(b, server), ownTime(b)
			b.RunParallel(func(p *testing.PB) {
				for i := int(number.Add(1)) * 37; p.Next(); i++ {
					if err := request(keys[i%len(keys)]); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(serverTime(b, server)-ofServer)/float64(b.N), "server-ns/op")
			b.ReportMetric(float64(ownTime(b)-ofClient)/float64(b.N), "client-ns/op")
		})
	}
	for name, text := range map[string]string{
		"a script of INCR": "return redis.call('INCR', KEYS[1])",
		"a script of GET, TIME and SET": "local v = redis.call('GET', KEYS[1]) redis.call('TIME')" +
			"redis.call('SET', KEYS[1], v or '0', 'PX', 1000) return {1, 2, 3, 4, 5}",
	} {
		script := rueidis.NewLuaScript(text)
		run(name, func(key string) error {
			return script.Exec(context.Background(), plain, []string{name + key}, []string{"1"}).Error()
		})
	}
	client, err := redislimit.Open(context.Background(), server.URL())
	require.NoError(b, err)
	b.Cleanup(func() { client.Close() })
	l, err := redislimit.New(client, "strict", engine.TokenBucket(engine.PerSecond(1e6), 1e6), redislimit.InMode(redislimit.Strict))
	require.NoError(b, err)
	b.Cleanup(func() { l.Close() })
	run("strict", func(key string) error {
		_, err := l.Take(context.Background(), key, 1)
		return err
	})
}

func serverTime(b *testing.B, server *redistest.Server) (sum time.Duration) {
	for _, line := range strings.Fields(server.Do("INFO", "cpu")) {
		if name, value, _ := strings.Cut(line, ":"); name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			require.NoError(b, err)
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum
}

func ownTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
