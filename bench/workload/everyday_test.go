package workload

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The clients' rates fall as a power of the client's rank.
func TestRates(t *testing.T) {
	all := rates(1000)
	assert.Equal(t, 50.0, all[0])
	assert.InDelta(t, 1, all[999], 1e-9)
	for i := range all[1:] {
		require.Less(t, all[i+1], all[i])
	}
	// In a Zipf distribution, the logarithms of rate and rank form a straight line.
	assert.InDelta(t, math.Log(all[0]/all[9]), math.Log(all[9]/all[99]), 1e-9)
}

func TestRounded(t *testing.T) {
	for x, want := range map[float64]int{0.2: 1, 1: 1, 1.6: 2, 99: 100, 198: 200, 400: 500, 8e5: 1_000_000} {
		assert.Equal(t, want, rounded(x), x)
	}
}

// The rate of the policy grows with the number of processors, so its ratio to the clients' rates stays the same.
func TestEverydayLimit(t *testing.T) {
	row, err := Find("everyday")
	require.NoError(t, err)
	for workers, want := range map[int]int{1: 10_000, 2: 20_000} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			assert.Equal(t, want, row.Limit().Tokens)
			assert.Equal(t, 200, row.Limit().Burst)
		}()
	}
}

// The requests together come as a Poisson process with the sum of the clients' rates, and each client's number matches
// its rate.
func TestEverydayArrivals(t *testing.T) {
	row := small(t, "everyday", 1000, 400_000)
	before, requests := row.Load()
	require.Equal(t, row.Requests, requests.Len())
	assert.Len(t, distinct(all(before)), 1000)

	total := 0.0
	for _, rate := range rates(1000) {
		total += rate
	}
	mean := 1 / total
	n := float64(requests.Len())
	last, sum, squares, late := time.Duration(0), 0.0, 0.0, 0
	for i := range requests.Len() {
		require.GreaterOrEqual(t, requests.Due(i), last)
		gap := (requests.Due(i) - last).Seconds()
		last = requests.Due(i)
		sum, squares = sum+gap, squares+gap*gap
		if gap > mean {
			late++
		}
	}
	assert.InEpsilon(t, mean, sum/n, 0.01)
	assert.InEpsilon(t, mean, math.Sqrt(squares/n-sum*sum/n/n), 0.01, "the deviation of exponential times is their mean")
	assert.InDelta(t, 1/math.E, float64(late)/n, 0.005, "one in e is longer than the mean")
	assert.Greater(t, requests.Lap(), last)

	counts, most, least := distinct(all(requests)), 0, math.MaxInt
	require.Len(t, counts, 1000)
	for key, count := range counts {
		addr, err := netip.ParseAddr(key)
		require.NoError(t, err)
		require.True(t, addr.Is4())
		most, least = max(most, count), min(least, count)
	}
	assert.InEpsilon(t, 50*last.Seconds(), most, 0.05)
	assert.InEpsilon(t, last.Seconds(), least, 0.35, "the least of a thousand counts of about a hundred")
}

// The everyday row is the same in every process.
func TestEverydayIsTheSame(t *testing.T) {
	row := small(t, "everyday", 1000, 5000)
	before, requests := row.Load()
	beforeAgain, again := row.Load()
	assert.Equal(t, all(before), all(beforeAgain))
	assert.Equal(t, all(requests), all(again))
	assert.Equal(t, requests.due, again.due)
	longer := requests.With(":80")
	assert.Equal(t, requests.At(7)+":80", longer.At(7))
	assert.Equal(t, requests.Due(7), longer.Due(7))
}

func TestAddressesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(clients) {
		a := address(n)
		require.False(t, seen[a], "%s twice", a)
		seen[a] = true
	}
}

func TestParseAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(`192.0.2.1 - - [17/May/2015:10:05:43 +0000] "GET / HTTP/1.1" 200 1
192.0.2.2 - joe [17/May/2015:12:05:03 +0200] "GET /[x] HTTP/1.1" 200 1
`)
	got, err := parseAccessLog(path)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "192.0.2.2", got[0].client)
	assert.Equal(t, "192.0.2.1", got[1].client)
	assert.Equal(t, 40*time.Second, got[1].at.Sub(got[0].at))

	write("192.0.2.1 - - [17/May/2015:10:05:43 +0000] x\nnonsense\n")
	_, err = parseAccessLog(path)
	assert.ErrorContains(t, err, "line 2: want a client and a time in brackets")
	write("")
	_, err = parseAccessLog(path)
	assert.ErrorContains(t, err, "no requests")
	_, err = parseAccessLog(path + "x")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Without a log, Missing returns the reason.
func TestAccessLogRow(t *testing.T) {
	row, err := Find("access-log")
	require.NoError(t, err)
	before, requests := row.Load()
	if os.Getenv(accessLogVariable) == "" {
		assert.Equal(t, "WEIR_ACCESS_LOG names no access log", row.Missing())
		assert.Zero(t, before.Len()+requests.Len())
		return
	}
	assert.Empty(t, row.Missing())
	assert.Len(t, distinct(all(requests)), before.Len())
	assert.Greater(t, requests.Lap(), requests.Due(requests.Len()-1))
}

// Each variant of a returning row has its own name, by which Find finds it.
func TestVariants(t *testing.T) {
	row, err := Find("returning-1k")
	require.NoError(t, err)
	assert.Equal(t, 1666, row.Capacity)
	names := map[string]bool{row.Name: true}
	for _, v := range row.Variants() {
		assert.False(t, names[v.Name], v.Name)
		names[v.Name] = true
		found, err := Find(v.Name)
		require.NoError(t, err)
		assert.Equal(t, v, found)
		assert.Positive(t, v.Differences())
	}
	assert.Len(t, names, 12)
	zipf, err := Find("returning-100k/zipf/0.9/aged")
	require.NoError(t, err)
	assert.Equal(t, "100,000 keys that come back idle, Zipf 1.1, 0.9 of MaxKeys, every slot was used", zipf.Title)
	assert.Equal(t, 3, zipf.Differences())
	everyday, err := Find("everyday")
	require.NoError(t, err)
	assert.Empty(t, everyday.Variants())
}
