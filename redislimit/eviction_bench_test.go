//go:build unix

package redislimit_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// BenchmarkEviction measures what each maxmemory-policy costs a limit of 5 per hour, on a server full of the keys of a
// cache. It reports how many requests are admitted in a minute, for a frequent and a rare key.
func BenchmarkEviction(b *testing.B) {
	for b.Loop() {
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, policy := range []string{
			"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
		} {
			all.Go(func() {
				often, seldom := underPressure(b, policy)
				mu.Lock()
				defer mu.Unlock()
				b.ReportMetric(float64(often), policy+"-often")
				b.ReportMetric(float64(seldom), policy+"-seldom")
			})
		}
		all.Wait()
	}
}

func underPressure(b *testing.B, policy string) (often, seldom int) {
	server := redistest.Start(b)
	cache, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	require.NoError(b, err)
	defer cache.Close()
	client, err := redislimit.Open(b.Context(), server.URL(), redislimit.Timeout(5*time.Second))
	require.NoError(b, err)
	defer client.Close()
	onLoss := redislimit.FailOpen
	if policy == "noeviction" {
		onLoss = redislimit.FailClosed
	}
	l, err := redislimit.New(client, "login", engine.TokenBucket(engine.Per(5, time.Hour), 5), redislimit.OnLoss(onLoss))
	require.NoError(b, err)
	defer l.Close()
	server.Do("CONFIG", "SET", "maxmemory", "12mb", "maxmemory-policy", policy)
	const perTick = 600
	value, number := strings.Repeat("x", 200), 0
	write := func() {
		commands := make(rueidis.Commands, perTick)
		for i := range commands {
			number++
			commands[i] = cache.B().Set().Key("cache " + strconv.Itoa(number)).Value(value).Ex(time.Hour).Build()
		}
		cache.DoMulti(b.Context(), commands...) // noeviction refuses them
	}
	for range 50 {
		write()
	}
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for tick := range 300 {
		<-ticks.C
		write()
		if l.Allow("often") {
			often++
		}
		for range 5 {
			if tick%100 == 50 && l.Allow("seldom") {
				seldom++
			}
		}
	}
	return often, seldom
}
