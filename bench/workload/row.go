package workload

import (
	"math/rand/v2"

	"github.com/weir-go/weir/bench/peers"
)

// A Draw is the order in which keys come.
type Draw int

const (
	InTurn  Draw = iota // every key once, in random order, then once more in another order, and so on
	Zipf                // key k in proportion to k^-1.1
	Uniform             // all keys equally likely
	Fresh               // every request has a key that was never seen before
	Poisson             // clients that come at random times, each at its own rate: see everyday.go
	Logged              // the clients of an access log, in its order: see accesslog.go
	Mixed               // clients that ask for twice what they get: see mixed.go
)

// A Row is one workload.
type Row struct {
	Name  string
	Title string
	Keys  int // keys that have had one request before the measurement starts
	Draw  Draw
	// Requests is the length of the stream, which then starts over unless Ends is true.
	Requests int
	// Capacity is the number of keys for which the limiters are made.
	Capacity int
	// Busy rows simulate an attack: with their limit, no key becomes idle during the measurement.
	Busy bool
	// Refused rows refuse every request, or half of the requests if Draw is Mixed. Other rows refuse no request.
	Refused bool
	// Hot is set for the row with one key, whose floor is a single contended compare-and-swap.
	Hot bool
	// Aged is set for rows in which every slot of weir's table has had a key. In other rows, a search for a missing key
	// ends early, at a slot that never had a key.
	Aged bool
	// Batch is set for the row that compares single calls with a batch.
	Batch bool
	// Shown is set for rows that resemble common workloads. Readers see them first, and they have the most rounds.
	Shown bool
	// Returning is set for rows whose keys come back with a full bucket: see returning.go.
	Returning bool
}

const million = 1_000_000

// Rows returns all rows.
func Rows() []Row {
	// Each key is repeated in another order, because otherwise branch predictors would learn the order. Repetitions
	// share the text of the keys.
	const few = 64_000
	rows := []Row{
		{Name: "allowed-1", Title: "allowed, 1 key", Keys: 1, Requests: few, Capacity: million},
		{Name: "allowed-1k", Title: "allowed, 1,000 keys", Keys: 1000, Requests: few, Capacity: million},
		{Name: "full-1k", Title: "allowed, 1,000 keys in a table for 1,000", Keys: 1000, Requests: few, Capacity: 1000,
			Shown: true},
		{Name: "denied-1k", Title: "denied, 1,000 keys", Keys: 1000, Requests: few, Capacity: million, Refused: true},
		{Name: "hot", Title: "allowed, one hot key on all cores", Keys: 1, Requests: few, Capacity: million, Hot: true},
		{Name: "zipf-1m", Title: "allowed, 1,000,000 keys, Zipf 1.1", Keys: million, Draw: Zipf, Requests: 2 * million,
			Capacity: million, Shown: true},
		{Name: "churn", Title: "churn: every request a new key", Keys: 2 * million, Draw: Fresh, Requests: million,
			Capacity: million},
		{Name: "churn-aged", Title: "churn in a table whose every slot was used", Keys: 2 * million, Draw: Fresh,
			Requests: million, Capacity: million, Aged: true},
		{Name: "flood", Title: "flood: new keys beyond a full table, 10 an hour, burst 3", Keys: 2 * million, Draw: Fresh,
			Requests: million, Capacity: million, Busy: true, Shown: true},
		{Name: "uniform-10m", Title: "allowed, 10,000,000 keys, uniform", Keys: 10 * million, Draw: Uniform,
			Requests: 2 * million, Capacity: 10 * million},
		{Name: "batch-10m", Title: "batch and single, 10,000,000 keys", Keys: 10 * million, Draw: Uniform,
			Requests: 2 * million, Capacity: 10 * million, Batch: true},
		everyday, mixed, accessLog,
	}
	return append(rows, returning()...)
}

// Large reports whether setting up the row takes seconds.
func (r *Row) Large() bool { return r.Keys > 2*million }

// Want returns the fraction of the requests that must be admitted.
func (r *Row) Want() float64 {
	switch {
	case r.Refused:
		return 0
	case r.Draw == Mixed:
		return 0.5
	}
	return 1
}

// Ends reports whether the row's stream must not be repeated, because a repeated stream would be another workload. Next
// returns new requests for such a row.
func (r *Row) Ends() bool { return r.Draw == Fresh || r.Draw == Mixed }

// Everyday reports whether the row's requests come at times like those of real clients.
func (r *Row) Everyday() bool { return r.Draw == Poisson || r.Draw == Logged }

// Together reports whether the subjects of the row take turns in one process. They do so if making the keys takes
// longer than measuring, or if the subjects differ only slightly.
func (r *Row) Together() bool { return r.Large() || r.Returning }

// Limit returns the row's limit for all limiters. The default limit is a token per nanosecond. It is never used up, and
// a key is idle again at once.
func (r *Row) Limit() peers.Limit {
	if r.Refused {
		return peers.Limit{Tokens: 1, Per: 240 * hour, Burst: 1}
	}
	if r.Everyday() {
		return everydayLimit(r)
	}
	if r.Busy {
		return peers.Limit{Tokens: 10, Per: hour, Burst: 3}
	}
	if r.Draw == Mixed {
		return peers.Limit{Tokens: asked / 2, Per: hour, Burst: asked / 2}
	}
	return peers.Limit{Tokens: 1e9, Per: second, Burst: 1e9}
}

// Load returns the keys that exist before the measurement, and the requests.
func (r *Row) Load() (before, requests *Stream) {
	before = newStream(r.Keys)
	dice := random(uint64(r.Keys))
	switch r.Draw {
	case Poisson:
		return loadEveryday(r, dice)
	case Logged:
		return loadAccessLog()
	}
	for _, n := range order(r, dice) {
		before.add(uint64(n))
	}
	if r.Draw == InTurn {
		before.repeat(r.Requests, dice)
		return before, before
	}
	if r.Ends() {
		return before, r.Next(0)
	}
	requests = newStream(r.Requests)
	draw := r.drawer(dice)
	for range r.Requests {
		requests.add(draw())
	}
	return before, requests
}

// Next returns the requests of another pass, for a row for which Ends is true. The keys of these requests occur in no
// other pass.
func (r *Row) Next(pass int) *Stream {
	if r.Draw == Mixed {
		return r.mixed(pass)
	}
	requests := newStream(r.Requests)
	for i := range r.Requests {
		requests.add(uint64(r.Keys + pass*r.Requests + i))
	}
	return requests
}

func order(r *Row, dice *rand.Rand) []uint32 {
	keys := make([]uint32, r.Keys)
	for i := range keys {
		keys[i] = uint32(i)
	}
	dice.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func (r *Row) drawer(dice *rand.Rand) func() uint64 {
	if r.Draw == Zipf {
		z := rand.NewZipf(dice, 1.1, 1, uint64(r.Keys-1))
		// The multiplier is a prime that divides no row's number of keys. So the multiplication is one to one, and
		// distributes the ranks over the kinds of keys.
		return func() uint64 { return z.Uint64() * 7_368_787 % uint64(r.Keys) }
	}
	return func() uint64 { return dice.Uint64N(uint64(r.Keys)) }
}
