package limitertest

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// A row is one kind of traffic. It is the same traffic as in the row of weir's benchmark with this name.
type row struct {
	name    string
	limit   Limit
	before  int // how many keys get one request before the measurement
	workers int // how many goroutines send requests at the same time
	floor   floorKind
	// traffic returns a function. For request i, counted from 0, this function returns the number of the key, and
	// whether the request must be admitted.
	traffic func(r row, random *rand.Rand) func(i int) (key uint64, admitted bool)
}

// A floorKind says which work a limiter must do at least.
type floorKind uint8

const (
	noFloor floorKind = iota // the least work depends on the decision
	changes                  // hash the key, read the clock and change a word
	loads                    // hash the key, read the clock and load a word
	swaps                    // change one word that all processors change
)

const (
	day        = 24 * time.Hour
	clients    = 100_000 // number of clients in the row everyday
	visitors   = 50_000  // number of visitors in the row mixed
	perVisitor = 16      // how many requests each visitor sends
)

// rows returns the rows of weir's own benchmark that are possible for any limiter.
func rows(short bool) []row {
	plenty := Limit{Tokens: 1e9, Per: time.Second, Burst: 1e9}
	// In weir's benchmark, this limit is 100 per second, and the requests are spread over seconds. Here the requests
	// come as fast as possible, so the rate of the limit is proportionally higher.
	everyday := Limit{Tokens: 10_000 * uint64(runtime.GOMAXPROCS(0)), Per: time.Second, Burst: 200}
	list := []row{
		{name: "full-1k", limit: plenty, before: 1000, workers: 1, floor: changes, traffic: inTurn},
		{name: "denied-1k", limit: Limit{Tokens: 1, Per: 10 * day, Burst: 1}, before: 1000, workers: 1, floor: loads, traffic: allRefused},
		{name: "hot", limit: plenty, before: 1, workers: runtime.GOMAXPROCS(0), floor: swaps, traffic: inTurn},
		{name: "zipf-1m", limit: plenty, before: 1_000_000, workers: 1, floor: changes, traffic: zipf},
		{name: "churn", limit: plenty, before: 2_000_000, workers: 1, floor: changes, traffic: newKeys},
		{name: "flood", limit: Limit{Tokens: 10, Per: time.Hour, Burst: 3}, before: 2_000_000, workers: 1, floor: changes, traffic: newKeys},
		{name: "everyday", limit: everyday, before: clients, workers: 1, floor: changes, traffic: poisson},
		{name: "mixed", limit: Limit{Tokens: perVisitor / 2, Per: time.Hour, Burst: perVisitor / 2}, before: visitors, workers: 1, traffic: mixed},
	}
	for i := range list {
		if short {
			if list[i].before = min(list[i].before, 1000); list[i].name == "everyday" { // each client comes more often
				list[i].limit.Tokens *= clients / 1000
			}
		}
	}
	return list
}

// inTurn returns the traffic in which every key is used once, then once more in another order, and so on. Processors
// learn an order that repeats.
func inTurn(r row, random *rand.Rand) func(int) (uint64, bool) {
	order := random.Perm(r.before)
	return func(i int) (uint64, bool) {
		if i %= len(order); i == 0 {
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		return uint64(order[i]), true
	}
}

// allRefused returns the same traffic as inTurn, for keys without tokens: all requests are refused.
func allRefused(r row, random *rand.Rand) func(int) (uint64, bool) {
	next := inTurn(r, random)
	return func(i int) (uint64, bool) {
		key, _ := next(i)
		return key, false
	}
}

// zipf returns the traffic in which the frequency of key k, counted from 0, is proportional to (k+1)^-1.1.
func zipf(r row, random *rand.Rand) func(int) (uint64, bool) {
	z := rand.NewZipf(random, 1.1, 1, uint64(r.before-1))
	return func(int) (uint64, bool) { return z.Uint64(), true }
}

// newKeys returns the traffic with a new key in every request.
func newKeys(r row, _ *rand.Rand) func(int) (uint64, bool) {
	return func(i int) (uint64, bool) { return uint64(r.before + i), true }
}

// poisson returns the traffic of clients that come at random. Their frequencies follow Zipf's law: the first client
// comes 50 times as often as the last client.
func poisson(r row, random *rand.Rand) func(int) (uint64, bool) {
	power := math.Log(50) / math.Log(float64(r.before))
	cumulative := make([]float64, r.before) // the sum of the rates up to each client
	for i, sum := 0, 0.0; i < len(cumulative); i++ {
		sum += math.Pow(float64(i+1), -power)
		cumulative[i] = sum
	}
	return func(int) (uint64, bool) {
		client, _ := slices.BinarySearch(cumulative, random.Float64()*cumulative[len(cumulative)-1])
		return uint64(min(client, len(cumulative)-1)), true
	}
}

// mixed returns the traffic of visitors. A visitor comes, sends twice the admitted number of requests, and is replaced
// by a new visitor.
func mixed(r row, random *rand.Rand) func(int) (uint64, bool) {
	type request struct {
		at      float64
		visitor uint64
	}
	requests, counts := make([]request, perVisitor*r.before), make([]int, r.before)
	return func(i int) (uint64, bool) {
		pass := i / len(requests)
		if i %= len(requests); i == 0 {
			clear(counts)
			for n := range requests {
				if n%perVisitor == 0 {
					requests[n].at = random.Float64()
				} else {
					requests[n].at = requests[n-n%perVisitor].at + random.Float64()/4
				}
				requests[n].visitor = uint64(n / perVisitor)
			}
			slices.SortFunc(requests, func(a, b request) int { return int(math.Copysign(1, a.at-b.at)) })
		}
		visitor := requests[i].visitor
		counts[visitor]++
		return uint64((1+pass)*r.before) + visitor, counts[visitor] <= perVisitor/2
	}
}

// appendKey appends a key of 12 to 40 bytes: an address with a port, a user of a tenant, or an API key.
func appendKey(b []byte, n uint64) []byte {
	switch n % 3 {
	case 0:
		b = strconv.AppendUint(b, 10+n>>24, 10)
		for shift := 16; shift >= 0; shift -= 8 {
			b = strconv.AppendUint(append(b, '.'), n>>shift&255, 10)
		}
		return strconv.AppendUint(append(b, ':'), 10000+n%9999, 10)
	case 1:
		b = strconv.AppendUint(append(b, "tenant-"...), n%97, 10)
		return strconv.AppendUint(append(b, "/user-"...), n, 10)
	}
	b = strconv.AppendUint(append(b, "key_live_"...), n*0x9e3779b97f4a7c15|1<<63, 16)
	return strconv.AppendUint(append(b, '_'), n, 16)
}
