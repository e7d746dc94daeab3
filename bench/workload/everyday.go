package workload

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/peers"
)

// The everyday row resembles many services in its policy and its clients. Each client makes requests in a Poisson
// process, with rates in a Zipf distribution. Almost nothing is refused, and most buckets are full when their client
// comes back.
//
// The requests are sped up: each request follows when the previous one is decided. Libraries accept no clock but the
// real one, so the policy's rate is increased by about the same factor. TakeAt is also measured with the planned times
// and the original policy.

const (
	clients              = 100_000
	leastRate, mostRate  = 1, 50 // requests per second of one client
	limitRate, limitSize = 100, 200
)

var everyday = Row{Name: "everyday", Title: "100/s burst 200, 100,000 clients at 1 to 50/s", Keys: clients,
	Draw: Poisson, Requests: million / 2, Capacity: clients / 6 * 10, Shown: true}

// pace is about how many requests a processor decides per second on the everyday row. If a subject is twice as fast,
// every client still stays below its limit.
const pace = 15_000_000.0

// everydayLimit returns the everyday policy, sped up like the requests.
func everydayLimit(r *Row) peers.Limit {
	if r.Draw == Logged {
		// The requests of several hours are decided in microseconds. No rate can grow by this factor, so this row has
		// the largest possible rate.
		return peers.Limit{Tokens: 1e9, Per: second, Burst: limitSize}
	}
	total := 0.0
	for _, rate := range rates(r.Keys) {
		total += rate
	}
	speedUp := rounded(pace / total * float64(runtime.GOMAXPROCS(0)))
	return peers.Limit{Tokens: limitRate * speedUp, Per: second, Burst: limitSize}
}

// rounded returns the number of 1, 2, 5, 10, 20, 50, ... nearest to x by its logarithm. With such a rate, tokens are
// whole nanoseconds apart.
func rounded(x float64) int {
	nearest := 1
	for ten := 1; ten <= 1_000_000; ten *= 10 {
		for _, n := range []int{ten, 2 * ten, 5 * ten} {
			if math.Abs(math.Log(x/float64(n))) < math.Abs(math.Log(x/float64(nearest))) {
				nearest = n
			}
		}
	}
	return nearest
}

// Unhurried returns the limit of an everyday row without the speedup, for subjects that get the due time of each
// request.
func (r *Row) Unhurried() peers.Limit {
	return peers.Limit{Tokens: limitRate, Per: second, Burst: limitSize}
}

// rates returns every client's requests per second: from mostRate, falling as a power of the client's rank, to
// leastRate.
func rates(clients int) []float64 {
	power := math.Log(mostRate/leastRate) / math.Log(float64(clients))
	all := make([]float64, clients)
	for i := range all {
		all[i] = mostRate * math.Pow(float64(i+1), -power)
	}
	return all
}

// loadEveryday returns the clients, shuffled, and the requests in the order of their times.
//
// Independent Poisson processes together are one Poisson process with the sum of their rates. A client's part of this
// sum is the probability that an arrival is the client's.
func loadEveryday(r *Row, dice *rand.Rand) (before, requests *Stream) {
	names := make([]string, r.Keys)
	for rank, n := range order(r, dice) {
		names[rank] = address(uint64(n))
	}
	before = newStream(r.Keys)
	for _, i := range dice.Perm(r.Keys) {
		before.addText(names[i])
	}
	below := rates(r.Keys) // for each client, the sum of its rate and those of all clients before it
	for i := range below[1:] {
		below[i+1] += below[i]
	}
	total := below[len(below)-1]
	requests, at := newStream(r.Requests), 0.0
	requests.due = make([]time.Duration, r.Requests)
	for i := range r.Requests {
		at += dice.ExpFloat64() / total // seconds
		requests.due[i] = time.Duration(at * 1e9)
		who, _ := slices.BinarySearch(below, dice.Float64()*total)
		requests.addText(names[min(who, len(names)-1)])
	}
	requests.lap = time.Duration((at + 1/total) * 1e9)
	return before, requests
}

// address returns the n-th IPv4 address of the workload. Different n below 2^24 give different addresses.
func address(n uint64) string {
	n = mixed24(n)
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

// mixed24 maps n to another number of 24 bits, one to one because the multiplier is odd.
func mixed24(n uint64) uint64 { return n * 0x9e3779b1 & (1<<24 - 1) }
