package script

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// BenchmarkTogether reports the server's processor time for a request with several limits, and the ratio of separate
// scripts to one script.
func BenchmarkTogether(b *testing.B) {
	client := start(b)
	policies := []engine.Policy{
		engine.TokenBucket(engine.PerSecond(1e6), 1e6), engine.FixedWindow(1e6, time.Second),
		engine.SlidingWindow(1e6, time.Second), engine.SlidingLog(1000, time.Millisecond),
	}
	const requests = 500
	for _, n := range []int{1, 2, 3, 8, 64} {
		b.Run(fmt.Sprint(n, " limits"), func(b *testing.B) {
			group := make([]Item, n)
			for i := range group {
				group[i] = Item{limitOf(b, policies[i%len(policies)]), fmt.Sprintf("%d:%d", n, i), strict(1)}
			}
			answers := make([]Answer, n)
			var together, apart float64
			for range b.N {
				before := worked(b, client)
				for range requests {
					require.NoError(b, RunTogether(context.Background(), client, [][]Item{group}, answers))
				}
				middle := worked(b, client)
				for range requests {
					for _, one := range group {
						require.NoError(b, one.Limit.Run(context.Background(), client, []string{one.Key}, []Ask{one.Ask}, answers[:1]))
					}
				}
				together, apart = together+middle-before, apart+worked(b, client)-middle
			}
			b.ReportMetric(together/float64(b.N)/requests, "µs/request")
			b.ReportMetric(apart/together, "apart/together")
			b.ReportMetric(median(b, client, func() {
				require.NoError(b, RunTogether(context.Background(), client, [][]Item{group}, answers))
			}), "µs/script")
			leased, keys, renewals := limitOf(b, policies[0]), make([]string, n), make([]Ask, n)
			for i := range keys {
				keys[i], renewals[i] = fmt.Sprintf("lease:%d:%d", n, i), Ask{Need: 11, Want: 21, Debt: 2}
			}
			b.ReportMetric(median(b, client, func() {
				require.NoError(b, leased.Run(context.Background(), client, keys, renewals, answers))
			}), "µs/renewals")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// The median leaves out calls during which the script waited for a processor.
func median(b *testing.B, client rueidis.Client, call func()) float64 {
	all := make([]int, 201)
	for i := range all {
		require.NoError(b, client.Do(context.Background(), client.B().ConfigResetstat().Build()).Error())
		call()
		text, err := client.Do(context.Background(), client.B().Info().Section("commandstats").Build()).ToString()
		require.NoError(b, err)
		found := regexp.MustCompile(`cmdstat_evalsha:calls=1,usec=(\d+)`).FindStringSubmatch(text)
		require.NotNil(b, found, text)
		all[i], err = strconv.Atoi(found[1])
		require.NoError(b, err)
	}
	slices.Sort(all)
	return float64(all[len(all)/2])
}

func worked(b *testing.B, client rueidis.Client) float64 {
	text, err := client.Do(context.Background(), client.B().Info().Section("cpu").Build()).ToString()
	require.NoError(b, err)
	sum := 0.0
	for _, found := range regexp.MustCompile(`used_cpu_(?:sys|user)_main_thread:([\d.]+)`).FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(found[1], 64)
		require.NoError(b, err)
		sum += seconds * 1e6
	}
	return sum
}
