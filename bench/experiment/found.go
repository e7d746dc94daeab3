package experiment

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/shard"
)

// FoundOf names the row whose requests are counted.
type FoundOf struct {
	Row string `json:"row"`
}

// A Counted contains the number of requests, and how many of them found their record.
type Counted struct {
	Requests int `json:"requests"`
	Found    int `json:"found"`
}

// Fraction returns the fraction of requests that found their record, 0 to 1.
func (c Counted) Fraction() float64 { return float64(c.Found) / float64(max(c.Requests, 1)) }

const (
	// between is the mean time between two requests of a key on the returning rows.
	between = time.Second
	// settling is how long requests run before the count starts, and counting is how long the count takes. Each of the
	// two times is long enough for a sweep and a pass through the requests.
	settling = engine.DefaultSweepInterval * 3 / 2
	counting = engine.DefaultSweepInterval
)

// MeasureFound counts the requests of a row that find the record of their key, in the table of a limiter. Other
// measurements do not count hits, because a shared counter would slow down the timed decisions.
//
// The clock shows the planned times of the requests, so that sweeps come at their default interval. On a row without
// times, a key comes back after a second on average.
func MeasureFound(of FoundOf) (Counted, error) {
	row, err := workload.Find(of.Row)
	if err != nil {
		return Counted{}, err
	}
	if why := row.Missing(); why != "" {
		return Counted{}, fmt.Errorf("%s: %s", of.Row, why)
	}
	before, requests := row.Load()
	c, err := newCounter(&row)
	if err != nil {
		return Counted{}, err
	}
	for i := range before.Len() {
		c.ask(before.At(i))
	}
	pace := due(&row, requests)
	began := c.now
	counts := began + int64(max(settling, requests.Lap()))
	ends := counts + int64(max(counting, requests.Lap()))
	for i := 0; c.now < ends; i++ {
		c.sweep(began + int64(pace(i)))
		found := c.ask(requests.At(i % requests.Len()))
		if c.now >= counts {
			c.Requests++
			if found {
				c.Found++
			}
		}
	}
	if c.wrong > 0 {
		return Counted{}, fmt.Errorf("%d requests were refused: want none", c.wrong)
	}
	return c.Counted, nil
}

func due(row *workload.Row, requests *workload.Stream) func(i int) time.Duration {
	if row.Everyday() {
		return func(i int) time.Duration {
			return time.Duration(i/requests.Len())*requests.Lap() + requests.Due(i%requests.Len())
		}
	}
	apart := between / time.Duration(row.Keys)
	return func(i int) time.Duration { return time.Duration(i) * apart }
}

type counter struct {
	Counted
	table *shard.Table
	seed  keyhash.Seed
	now   int64
	swept int64 // when the last sweep was due
	wrong int
}

// newCounter returns a counter with a table of the row's size, as engine.MaxKeys plans it. For an aged row, each slot
// has already been used by another key.
func newCounter(row *workload.Row) (*counter, error) {
	limit := row.Limit()
	if row.Everyday() {
		limit = row.Unhurried()
	}
	bucket, err := atomicbucket.NewTokenBucket(float64(limit.Tokens), limit.Per, uint64(limit.Burst))
	if err != nil {
		return nil, err
	}
	plan, err := shard.NewPlan(&bucket, 0)
	if err != nil {
		return nil, err
	}
	c := &counter{seed: keyhash.NewSeed(), now: 1}
	c.table, err = shard.New(shard.Config{Plan: plan, Slots: measure.Slots(row.Capacity), Shards: 1, Start: c.now})
	if err != nil {
		return nil, err
	}
	if row.Aged {
		for i := range measure.Aged * row.Capacity {
			c.now += int64(time.Microsecond)
			c.ask(fmt.Sprint("other ", i))
		}
	}
	c.swept = c.now
	return c, nil
}

func (c *counter) ask(key string) (found bool) {
	place := c.table.Find(keyhash.String(c.seed, key))
	_, _, v := c.table.Hit(place, c.now, 1, 0)
	if v == shard.Undecided {
		v = c.table.Miss(place, c.now, 1, 0, nil).Verdict
	} else {
		found = true
	}
	if v != shard.Admitted {
		c.wrong++
	}
	return found
}

// sweep moves the clock to the time now. It does what the background sweeper would have done by then.
func (c *counter) sweep(now int64) {
	for ; now-c.swept >= int64(engine.DefaultSweepInterval); c.swept += int64(engine.DefaultSweepInterval) {
		c.table.SweepEpoch(c.swept+int64(engine.DefaultSweepInterval), nil)
	}
	c.now = now
}
