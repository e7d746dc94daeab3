package resp

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cell computes the documented rule of redis-cell with exact fractions. For each key it stores the theoretical
// arrival time, at which the key will be full again. One token is worth period / count. At most max_burst + 1 tokens
// may be taken at once. There is one difference from redis-cell: after a change of the limit, a key owes the same
// number of tokens, not the same time.
type cell struct {
	full  map[string]*big.Rat
	token map[string]*big.Rat // the time that one token of the key's debt is worth
	tick  *big.Rat            // the worth of a token is rounded up to a multiple of tick
}

// throttle returns the five integers with which CL.THROTTLE answers.
func (c *cell) throttle(now *big.Rat, key string, burst, count, period, quantity int64) [5]int64 {
	token := new(big.Rat).Mul(ceil(new(big.Rat).Quo(big.NewRat(period, count), c.tick)), c.tick)
	times := func(n int64) *big.Rat { return new(big.Rat).Mul(token, big.NewRat(n, 1)) }
	room, demand := times(burst+1), times(quantity)

	time, last := new(big.Rat), c.token[key] // time until the key is full, and what a token of this time is worth
	if last == nil {
		last = token
	}
	if full := c.full[key]; full != nil && full.Cmp(now) > 0 {
		time.Sub(full, now)
	}
	in := func(time, of, other *big.Rat) *big.Rat { // the time for the same number of tokens if they had another worth
		tokens := new(big.Rat).Quo(time, of)
		return tokens.Mul(tokens, other)
	}
	owed := new(big.Rat).Mul(ceil(in(new(big.Rat).Quo(time, c.tick), last, token)), c.tick)
	next := new(big.Rat).Add(owed, demand)
	answer := [5]int64{0, burst + 1, 0, -1, 0}
	if next.Cmp(room) > 0 {
		answer[0] = 1
		if quantity > 0 && demand.Cmp(room) <= 0 && token.Cmp(last) < 0 { // from now on, the tokens come back faster
			time, last = owed, token
			c.full[key], c.token[key] = new(big.Rat).Add(now, owed), token
		}
		if demand.Cmp(room) <= 0 {
			wait := new(big.Rat).Sub(time, in(new(big.Rat).Sub(room, demand), token, last))
			if token.Cmp(last) < 0 { // a peek returns the same as a take would
				wait.Sub(owed, room)
			}
			answer[3] = toInt(ceil(wait))
		}
	} else {
		if owed = next; quantity > 0 {
			time = owed
			c.full[key], c.token[key] = new(big.Rat).Add(now, owed), token
		}
	}
	if left := new(big.Rat).Sub(room, owed); left.Sign() > 0 {
		answer[2] = toInt(floor(left.Quo(left, token)))
	}
	answer[4] = toInt(ceil(time))
	return answer
}

func floor(r *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom())) // Euclidean division, so it rounds down
}

func ceil(r *big.Rat) *big.Rat { return new(big.Rat).Neg(floor(new(big.Rat).Neg(r))) }

func toInt(r *big.Rat) int64 { return r.Num().Int64() }

// TestTheModelIsThePublishedOne checks cell with the examples in redis-cell's documents.
func TestTheModelIsThePublishedOne(t *testing.T) {
	c := &cell{map[string]*big.Rat{}, map[string]*big.Rat{}, big.NewRat(1, 1e9)}
	now := big.NewRat(0, 1)
	assert.Equal(t, [5]int64{0, 16, 15, -1, 2}, c.throttle(now, "user123", 15, 30, 60, 1))
	assert.Equal(t, [5]int64{0, 1, 0, -1, 10}, c.throttle(now, "once", 0, 1, 10, 1))
	assert.Equal(t, [5]int64{1, 1, 0, 10, 10}, c.throttle(now, "once", 0, 1, 10, 1))
	assert.Equal(t, [5]int64{1, 1, 0, -1, 10}, c.throttle(now, "once", 0, 1, 10, 2))
}

// TestAgreesWithRedisCell: for random sequences of commands with changing limits, the server and a cell return the same
// integers. If a token is worth whole ticks of the table, the cell is exactly the published rule. Otherwise the cell
// rounds this worth up.
func TestAgreesWithRedisCell(t *testing.T) {
	rates := []struct{ count, period int64 }{
		// In the first line, a token is worth whole nanoseconds. In the second line, it is not.
		{30, 60}, {1, 1}, {1, 10}, {100, 1}, {10, 60}, {1000, 1}, {1, 3600}, {120, 60}, {5000, 3600},
		{3, 1}, {7, 60}, {97, 1}, {999, 7}, {123457, 86400}, {1_000_003, 10},
	}
	for _, table := range []struct {
		longest time.Duration
		tick    *big.Rat
		step    int64 // step of the clock, in nanoseconds
	}{
		{longestOfTests, big.NewRat(1, 1e9), 1}, {time.Hour, big.NewRat(1, 16e9), 1}, {52 * 24 * time.Hour, big.NewRat(2, 1e9), 2},
		{365 * 24 * time.Hour, big.NewRat(16, 1e9), 16},
	} {
		t.Run(table.longest.String(), func(t *testing.T) {
			for seed := range uint64(4) {
				d := open(t)
				d.settings.Store(&Settings{Limiter: d.clock.limiter(t, table.longest), Longest: table.longest})
				model := &cell{map[string]*big.Rat{}, map[string]*big.Rat{}, table.tick}
				random := rand.New(rand.NewPCG(seed, 7))
				sent, want, limited := "", "", 0
				for range 250 {
					now := d.clock.nanos.Add(gap(random))
					d.clock.nanos.Add(-(now % table.step)) // at multiples of step, both have the same time
					at := big.NewRat(d.clock.nanos.Load(), 1e9)
					sent, want = "", ""
					for range 1 + random.IntN(6) { // all commands of a pipeline have the same time
						rate := rates[random.IntN(len(rates))]
						key, burst := fmt.Sprint("k", random.IntN(5)), random.Int64N(20)
						if time.Duration((burst+1)*rate.period/rate.count+1)*time.Second > table.longest {
							burst = 0
						}
						quantity := random.Int64N(4)
						if random.IntN(20) == 0 {
							quantity = burst + random.Int64N(3)
						}
						sent += resp(fmt.Sprintf("CL.THROTTLE %s %d %d %d %d", key, burst, rate.count, rate.period, quantity))
						answer := model.throttle(at, key, burst, rate.count, rate.period, quantity)
						limited += int(answer[0])
						want += "*5"
						for _, n := range answer {
							want += fmt.Sprint(" :", n)
						}
						want += " "
					}
					require.Equal(t, want, flat(d.says(sent))+" ", "seed %d: %s", seed, flat(sent))
				}
				assert.Greater(t, limited, 100, "the sequence says little")
			}
		})
	}
}

// TestMonthlyLimits: one table is for long limits and another for shorter limits. Both give the same answer for every
// limit, at any nanosecond.
func TestMonthlyLimits(t *testing.T) {
	for _, longest := range []time.Duration{52 * 24 * time.Hour, 365 * 24 * time.Hour} {
		for nanos := range int64(33) {
			d := open(t)
			d.settings.Store(&Settings{Limiter: d.clock.limiter(t, longest), Longest: longest})
			d.clock.nanos.Add(nanos)
			assert.Equal(t, "*5 :0 :1000 :999 :-1 :2592 *5 :0 :1000 :0 :-1 :2592000 *5 :1 :1000 :0 :2592 :2592000 "+
				"*5 :0 :16 :15 :-1 :2 *5 :0 :1 :0 :-1 :60 *5 :1 :1 :0 :60 :60", flat(d.says(resp(
				"CL.THROTTLE month 999 1000 2592000", "CL.THROTTLE month 999 1000 2592000 999", "CL.THROTTLE month 999 1000 2592000",
				"CL.THROTTLE a 15 30 60", "CL.THROTTLE b 0 1 60", "CL.THROTTLE b 0 1 60"))), "%v and %d ns", longest, nanos)
		}
	}
}

// gap returns the nanoseconds until the next request. There are none, a few, or enough for all keys to be full again.
func gap(random *rand.Rand) int64 {
	switch random.IntN(4) {
	case 0:
		return 0
	case 1:
		return random.Int64N(100)
	case 2:
		return random.Int64N(int64(3 * time.Second))
	}
	return random.Int64N(int64(time.Second) * []int64{1, 20, 4000}[random.IntN(3)])
}
