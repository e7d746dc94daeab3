package atomicbucket

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refunded calls givenBack for the usual case: a refund at the tick now, without takes ahead of the clock and without a
// reservation that waits.
func refunded(t *testing.T, algorithm Algorithm, s State, now uint64, d Demand, of Receipt, want State, name string) {
	t.Helper()
	givenBack(t, algorithm, s, Return{Now: now, Latest: now, Demand: d, Of: of}, want, name)
}

// givenBack requires that a refund leaves a record in the state want. If the slot holds another state than s, the
// refund must write nothing.
func givenBack(t *testing.T, algorithm Algorithm, s State, g Return, want State, name string) {
	t.Helper()
	var w Word
	w.w.Store(uint64(s))
	after, ok := algorithm.Refund(s.Record(), g, &w)
	require.True(t, ok, name)
	assert.Equal(t, want.String(), after.String(), name)
	assert.Equal(t, after, w.Load(), name)
	other := s ^ 1
	w.w.Store(uint64(other))
	_, ok = algorithm.Refund(s.Record(), g, &w)
	assert.False(t, ok, name)
	assert.Equal(t, other, w.Load(), name)
}

// TestARefundBehindOthers: if only takes followed the take that is given back, RefundBehind does the same as Refund,
// with less information.
func TestARefundBehindOthers(t *testing.T) {
	b, err := NewTokenBucket(1, 1000, 5)
	require.NoError(t, err)
	const at = uint64(1 << 40)
	random := rand.New(rand.NewPCG(15, 15))
	for range 10_000 {
		cost := 1000 * (1 + random.Uint64N(3))
		after := NewState(Live, random.Uint64N(1<<VersionBits), at+cost+random.Uint64N(3000))
		s := after.moved(uint64(after) + 1 + random.Uint64N(5000))
		now, part := at+random.Uint64N(9000), 1000*random.Uint64N(cost/1000+1)
		g := Return{Now: now, Latest: now, Demand: b.Quota().Demand(part / 1000), Of: b.Receipt(after, int64(at), cost)}
		var word Word
		word.w.Store(uint64(s))
		want, ok := b.Refund(s.Record(), g, &word)
		require.True(t, ok)
		_, ok = b.RefundBehind(s, after, now, part, &word)
		require.False(t, ok, "it holds another state by now")
		word.w.Store(uint64(s))
		got, ok := b.RefundBehind(s, after, now, part, &word)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, want, word.Load())
	}
}

// TestWhatARefundOfABucketGivesBack: a refund gives back at most the tokens that the record certainly owes because of
// the take.
func TestWhatARefundOfABucketGivesBack(t *testing.T) {
	b, err := NewTokenBucket(1, 1000, 5) // a token is 1000 ticks, and a tick is a nanosecond
	require.NoError(t, err)
	const at = uint64(1 << 40) // when the take was made, which left a debt of 3000
	take := Receipt{tick: at + 3000, cost: 1000, nanos: int64(at), recordInfo: recordInfo{7, true}}
	state := func(version, debt uint64) State { return NewState(Live, version, at+debt) }
	one := b.Quota().Demand(1)
	of2 := take
	of2.cost = 2000
	for name, c := range map[string]struct {
		state State
		later uint64
		d     Demand
		of    Receipt
		want  State
	}{
		"nothing came since":                       {state(7, 3000), 500, one, take, state(7, 2000)},
		"nothing came since, nearly full":          {state(7, 3000), 2500, one, take, state(7, 2500)},
		"nothing came since, full again":           {state(7, 3000), 4000, one, take, state(7, 4000)},
		"of no take in particular":                 {state(7, 3000), 0, one, Receipt{}, state(8, 2000)},
		"of no take, at the receipt's version":     {state(0, 3000), 0, one, Receipt{}, state(1, 2000)},
		"others took":                              {state(7, 4000), 500, one, take, state(8, 3000)},
		"others took, and a part of it is paid":    {state(7, 4000), 2500, one, take, state(8, 3500)},
		"others took, and all of it is paid":       {state(7, 4000), 3500, one, take, state(8, 4000)},
		"others gave back":                         {state(9, 4000), 250, one, take, state(10, 3250)},
		"others gave back, one of two":             {state(9, 4000), 1000, one, of2, state(10, 3000)},
		"others gave back, one of two, long ago":   {state(9, 4000), 1250, one, of2, state(10, 3250)},
		"others gave back, long ago":               {state(9, 4000), 1000, one, take, state(10, 4000)},
		"others gave back, very long ago":          {state(9, 4000), 2000, one, take, state(10, 4000)},
		"others gave back, and little is owed":     {state(9, 300), 200, one, take, state(10, 200)},
		"others gave back, the same is owed again": {state(9, 3000), 250, one, take, state(10, 2250)},
		"others took more than the limit":          {state(7, 5001), 0, one, take, state(8, 4001)},
		"others have taken all":                    {state(7, 5000), 0, one, take, state(8, 4000)},
		"no take in particular":                    {state(7, 3000), 500, one, Receipt{}, state(8, 2000)},
		"more than is owed":                        {state(7, 3000), 500, b.Quota().Demand(5), Receipt{}, state(8, 500)},
		"nothing":                                  {state(7, 3000), 500, b.Quota().Demand(0), Receipt{}, state(8, 3000)},
		"no take in particular, the zero payload": {NewState(Live, 0, 0), 1<<54 - 1<<40 - 1500, one, Receipt{},
			NewState(Live, 1, 1<<54-1000)},
	} {
		refunded(t, &b, c.state, at+c.later, c.d, c.of, c.want, name)
	}
	// These takes were ahead of the clock, and have used the tokens that come back until their time.
	for name, c := range map[string]struct {
		state  State
		latest uint64
		of     Receipt
		want   State
	}{
		"a later take, of all of it":     {state(7, 5000), 3000, take, state(8, 5000)},
		"a later take, of a part of it":  {state(7, 5000), 2500, take, state(8, 4500)},
		"a later take, others gave back": {state(9, 4000), 750, take, state(10, 3750)},
		"a later take, no take in mind":  {state(7, 3000), 1, Receipt{}, state(8, 3000)},
		"others go when all has come":    {state(7, 8000), 3000, take, state(8, 8000)},
		"others go, some later":          {state(7, 8000), 2750, take, state(8, 7750)},
		"its own, ahead of the clock":    {state(7, 3000), 2200, take, state(7, 2200)},
	} {
		givenBack(t, &b, c.state, Return{Now: at, Latest: at + c.latest, Demand: one, Of: c.of}, c.want, name)
	}
	// Charges can cause a debt above the limit even if no reservation waits.
	charged := Return{Now: at, Latest: at, Demand: one, Of: take}
	givenBack(t, &b, state(7, 9000), charged, state(8, 8000), "charged behind it")
	charged.Of = Receipt{}
	givenBack(t, &b, state(7, 9000), charged, state(8, 8000), "charged, no take in particular")
	// The ticks in a payload wrap around. After a whole turn, the tick of the receipt occurs again, but no longer
	// identifies the take.
	const turn = uint64(1) << PayloadBits
	givenBack(t, &b, state(7, 3000), Return{Now: at + turn, Latest: at + turn, Demand: one, Of: take}, state(8, 3000),
		"the same, a turn later")
	givenBack(t, &b, NewState(Live, 7, at+maxDebt+2000), Return{Now: at + maxDebt, Latest: at + maxDebt, Demand: one, Of: take},
		NewState(Live, 8, at+maxDebt+2000), "long ago")
	givenBack(t, &b, NewState(Live, 9, at+maxDebt+2000), Return{Now: at + maxDebt + 1, Latest: at + maxDebt + 1, Demand: one, Of: take},
		NewState(Live, 10, at+maxDebt+2000), "longer ago")
	// A bucket that rounds may owe a tick more than its burst.
	rounded, err := NewTokenBucket(17, 19, 5)
	require.NoError(t, err)
	most := rounded.burst
	of := Receipt{tick: at + most + 1, cost: 2, nanos: rounded.clock.wait(0, at).Nanoseconds(), recordInfo: recordInfo{7, true}}
	refunded(t, &rounded, state(7, most+1), at, rounded.Quota().Demand(1), Receipt{}, state(8, most-1), "a tick more")
	refunded(t, &rounded, state(7, most+2), at, rounded.Quota().Demand(1), Receipt{}, state(8, most), "two ticks more")
	refunded(t, &rounded, state(7, most+1), at, rounded.Quota().Demand(1), of, state(7, most-1), "its own")
}

// TestWhatARefundOfAWindowGivesBack: a refund gives back to the window of the take, if that is still the current
// window.
func TestWhatARefundOfAWindowGivesBack(t *testing.T) {
	w, err := NewFixedWindow(5, 7, 10*time.Microsecond*1000, false)
	require.NoError(t, err)
	const now = uint64(1 << 50)
	state := func(version, end, taken uint64) State { return NewState(Live, version, w.pack(end, taken)) }
	in := func(version uint8, end uint64) Receipt {
		return Receipt{tick: end, nanos: int64(now), recordInfo: recordInfo{version, true}}
	}
	old := func(more uint64) Receipt {
		return Receipt{tick: now + 9, nanos: int64(now - w.maxAhead - more), recordInfo: recordInfo{7, true}}
	}
	d := func(n uint64) Demand { return w.Quota().Demand(n) }
	for name, c := range map[string]struct {
		state State
		d     Demand
		of    Receipt
		want  State
	}{
		"this window":              {state(7, now+9, 3), d(2), in(7, now+9), state(7, now+9, 1)},
		"all of it":                {state(7, now+9, 3), d(3), in(7, now+9), state(7, now, 0)},
		"more":                     {state(7, now+9, 3), d(4), in(7, now+9), state(7, now, 0)},
		"another window":           {state(7, now+9, 3), d(2), in(7, now+8), state(7, now+9, 3)},
		"another version":          {state(7, now+9, 3), d(2), in(6, now+9), state(7, now+9, 1)},
		"of long ago":              {state(7, now+9, 3), d(2), old(1), state(7, now+9, 3)},
		"of as long ago as can be": {state(7, now+9, 3), d(2), old(0), state(7, now+9, 1)},
		"begins later":             {state(7, now+w.length+1, 3), d(2), Receipt{}, state(7, now+w.length+1, 1)},
		"a window that is over":    {state(7, now, 3), d(2), in(7, now), state(7, now, 3)},
		"over, no take in mind":    {state(7, now-1, 3), d(2), Receipt{}, state(7, now-1, 3)},
		"no take in particular":    {state(7, now+9, 3), d(2), Receipt{}, state(7, now+9, 1)},
		"no take, another version": {state(0, now+9, 3), d(2), Receipt{}, state(0, now+9, 1)},
	} {
		refunded(t, &w, c.state, now, c.d, c.of, c.want, name)
	}
	// A take was ahead of the clock.
	ahead := Return{Now: now, Latest: now + 5, Demand: d(2)}
	givenBack(t, &w, state(7, now+w.length+1, 3), ahead, state(7, now+w.length+1, 3), "begins later")
	givenBack(t, &w, state(7, now+w.length, 3), ahead, state(7, now+w.length, 1), "begins now")
	ahead.Of = in(7, now+w.length+1)
	givenBack(t, &w, state(7, now+w.length+1, 3), ahead, state(7, now+w.length+1, 1), "begins later, its own")
}

// TestWhatARefundOfTwoWindowsGivesBack: a refund of a sliding window counter gives back to the window of the take, if
// that is the current or the previous window.
func TestWhatARefundOfTwoWindowsGivesBack(t *testing.T) {
	w, err := NewSlidingWindow(5, 7, 10*time.Second)
	require.NoError(t, err)
	const second = uint64(time.Second)
	now := uint64(1003) * 10 * second
	state := func(version, index, previous, current uint64) State {
		return NewState(Live, version, w.pack(counts{index: index, previous: previous, current: current}))
	}
	in := func(version uint8, index uint64) Receipt {
		return Receipt{tick: index, recordInfo: recordInfo{version, true}}
	}
	d := func(n uint64) Demand { return w.Quota().Demand(n) }
	for name, c := range map[string]struct {
		state State
		d     Demand
		of    Receipt
		want  State
	}{
		"this window":                      {state(7, 1003, 3, 2), d(1), in(7, 1003), state(7, 1003, 3, 1)},
		"more than was taken in it":        {state(7, 1003, 3, 2), d(4), in(7, 1003), state(7, 1003, 3, 0)},
		"the one before":                   {state(7, 1003, 3, 2), d(1), in(7, 1002), state(7, 1003, 2, 2)},
		"more than was taken then":         {state(7, 1003, 3, 2), d(4), in(7, 1002), state(7, 1003, 0, 2)},
		"two before":                       {state(7, 1003, 3, 2), d(1), in(7, 1001), state(7, 1003, 3, 2)},
		"the next":                         {state(7, 1003, 3, 2), d(1), in(7, 1004), state(7, 1003, 3, 2)},
		"another version":                  {state(7, 1003, 3, 2), d(1), in(8, 1003), state(7, 1003, 3, 1)},
		"begins later":                     {state(7, 1004, 3, 2), d(4), Receipt{}, state(7, 1004, 1, 0)},
		"no take in particular":            {state(7, 1003, 3, 2), d(1), Receipt{}, state(7, 1003, 3, 1)},
		"of both":                          {state(7, 1003, 3, 2), d(4), Receipt{}, state(7, 1003, 1, 0)},
		"all of both":                      {state(7, 1003, 3, 2), d(9), Receipt{}, state(7, 1003, 0, 0)},
		"the record's window is the last":  {state(7, 1002, 3, 2), d(1), in(7, 1002), state(7, 1003, 1, 0)},
		"its previous one is over":         {state(7, 1002, 3, 2), d(1), in(7, 1001), state(7, 1003, 2, 0)},
		"all is over":                      {state(7, 1001, 3, 2), d(1), Receipt{}, state(7, 1001, 3, 2)},
		"nothing in the present one":       {state(7, 1003, 3, 0), d(1), in(7, 1003), state(7, 1003, 3, 0)},
		"nothing in the previous one":      {state(7, 1003, 0, 3), d(1), in(7, 1002), state(7, 1003, 0, 3)},
		"no take in mind, another version": {state(0, 1003, 0, 3), d(1), Receipt{}, state(0, 1003, 0, 2)},
	} {
		refunded(t, &w, c.state, now, c.d, c.of, c.want, name)
	}
	// A take was ahead of the clock.
	ahead := Return{Now: now, Latest: now + 10*second, Demand: d(4)}
	givenBack(t, &w, state(7, 1004, 3, 2), ahead, state(7, 1004, 0, 2), "begins later")
	givenBack(t, &w, state(7, 1003, 3, 2), ahead, state(7, 1003, 1, 0), "begins now")
	ahead.Of = in(7, 1004)
	givenBack(t, &w, state(7, 1004, 3, 2), ahead, state(7, 1004, 3, 0), "begins later, its own")
	ahead.Of = in(7, 1003)
	givenBack(t, &w, state(7, 1004, 3, 2), ahead, state(7, 1004, 0, 2), "begins later, another's")
}

// TestWhatARefundInFlightGivesBack: a refund of a limit in flight gives back to the period of the take, if the record
// still has that period and the tenure is the same. The version, which changes with the limit, does not matter.
func TestWhatARefundInFlightGivesBack(t *testing.T) {
	c, err := NewConcurrency(5, 7, 10*time.Second)
	require.NoError(t, err)
	const now = uint64(1003)
	state := func(born, index, previous, current uint64) State {
		return NewState(Live, 3, c.pack(index, previous, current, born))
	}
	in := func(born, index uint64) Receipt {
		taken := int64(index-1) * int64(10*time.Second) // the record was one period ahead of the take
		return Receipt{tick: 1<<tenureBits | born, nanos: taken, recordInfo: recordInfo{known: true}}
	}
	d := func(n uint64) Demand { return c.Quota().Demand(n) }
	cases := map[string]struct {
		state State
		d     Demand
		of    Receipt
		want  State
	}{
		"this period":                      {state(7, 1003, 3, 2), d(1), in(7, 1003), state(7, 1003, 3, 1)},
		"more than is in flight of it":     {state(7, 1003, 3, 2), d(4), in(7, 1003), state(7, 1003, 3, 0)},
		"the one before":                   {state(7, 1003, 3, 2), d(1), in(7, 1002), state(7, 1003, 2, 2)},
		"more than is in flight of that":   {state(7, 1003, 3, 2), d(4), in(7, 1002), state(7, 1003, 0, 2)},
		"two before":                       {state(7, 1003, 3, 2), d(1), in(7, 1001), state(7, 1003, 3, 2)},
		"a whole circle before":            {state(7, 1003, 3, 2), d(1), in(7, 1003-64), state(7, 1003, 3, 2)},
		"the next":                         {state(7, 1003, 3, 2), d(1), in(7, 1004), state(7, 1003, 3, 2)},
		"another tenure":                   {state(7, 1003, 3, 2), d(1), in(8, 1003), state(7, 1003, 3, 2)},
		"the record's period is the last":  {state(7, 1002, 3, 2), d(1), in(7, 1002), state(7, 1002, 3, 1)},
		"forgotten, and still counted":     {state(7, 1002, 3, 2), d(1), in(7, 1001), state(7, 1002, 2, 2)},
		"a record that is ahead":           {state(7, 1005, 3, 2), d(1), in(7, 1004), state(7, 1005, 2, 2)},
		"no take in particular":            {state(7, 1003, 3, 2), d(1), Receipt{}, state(7, 1003, 2, 2)},
		"of both":                          {state(7, 1003, 3, 2), d(4), Receipt{}, state(7, 1003, 0, 1)},
		"all of both":                      {state(7, 1003, 3, 2), d(9), Receipt{}, state(7, 1003, 0, 0)},
		"no take, and the first are past":  {state(7, 1002, 3, 2), d(1), Receipt{}, state(7, 1002, 3, 1)},
		"no take, and all is past":         {state(7, 1001, 3, 2), d(1), Receipt{}, state(7, 1001, 3, 2)},
		"no take in mind, another version": {state(0, 1003, 0, 3), d(1), Receipt{}, state(0, 1003, 0, 2)},
	}
	for name, of := range cases {
		refunded(t, &c, of.state, now, of.d, of.of, of.want, name)
	}
	taken := c.Receipt(state(7, 1003, 3, 2), int64(now)*int64(10*time.Second), 1)
	assert.Equal(t, Receipt{tick: 7, nanos: int64(now) * int64(10*time.Second), recordInfo: recordInfo{known: true}}, taken)
	taken = c.Receipt(state(7, 1005, 3, 2), int64(now)*int64(10*time.Second), 1)
	assert.EqualValues(t, 2<<tenureBits|7, taken.tick, "a record that is ahead")
	assert.Equal(t, state(9, 3, 3, 2).Payload(), c.Born(c.pack(3, 3, 2, 0), 5<<tenureBits+9))
}

// TestAPartOfATakeIsGivenBack: after a part of a take is given back, the receipt stands for the rest.
func TestAPartOfATakeIsGivenBack(t *testing.T) {
	s := NewState(Live, 126, 100)
	assert.Equal(t, s, s.Less(0, NewState(Live, 126, 1)))
	assert.Equal(t, NewState(Live, 126, 80), s.Less(20, NewState(Live, 126, 1)), "the version is what it was")
	assert.Equal(t, NewState(Live, 127, 80), s.Less(20, NewState(Live, 127, 1)), "the refund changed it")
	assert.Equal(t, NewState(Live, 126, 80), s.Less(20, NewState(Live, 0, 1)), "another refund did, too")
	assert.Equal(t, NewState(Live, 126, 80), s.Less(20, NewState(Live, 125, 1)))
	s = NewState(Live+Second, 127, 5)
	assert.Equal(t, NewState(Live+Second, 0, 1<<PayloadBits-5), s.Less(10, NewState(Live, 0, 1)), "both go round")
	r := Receipt{recordInfo: recordInfo{version: 127}}
	assert.True(t, r.sameVersion(NewState(Live, 127, 3)))
	assert.False(t, r.sameVersion(NewState(Live, 0, 3)))
}

// TestHowFarAheadACountMayBe: a call whose clock is behind the record reads the record as at the beginning of the
// record's window. A record that is too many windows ahead is read as past.
func TestHowFarAheadACountMayBe(t *testing.T) {
	w, err := NewSlidingWindow(5, MaxCount, 10*time.Second)
	require.NoError(t, err)
	require.EqualValues(t, 4, w.maxAhead)
	const index, window = uint64(1000), uint64(10 * time.Second)
	now := index*window + 7
	for ahead, want := range map[uint64]counts{
		0: {index, window - 7, 0, 2, 3},
		1: {index + 1, window, window - 7, 2, 3},
		4: {index + 4, window, 4*window - 7, 2, 3},
		5: {index, window - 7, 0, 0, 0},
	} {
		s := NewState(Live, 1, w.pack(counts{index: index + ahead, previous: 2, current: 3}))
		assert.Equal(t, want, w.read(s, now), "%d", ahead)
	}
}

// TestHowFarAheadWhatIsInFlightMayBe: the field late says by how many periods the clock of a call may be behind
// the record. A call that is further behind reads the record as past.
func TestHowFarAheadWhatIsInFlightMayBe(t *testing.T) {
	c, err := NewConcurrency(5, MaxInFlight, time.Minute)
	require.NoError(t, err)
	const now = uint64(1000)
	for ahead, want := range map[uint64][2]uint64{
		0: {0, 0}, 1: {0, 1}, c.maxAhead: {0, c.maxAhead}, c.maxAhead + 1: {c.maxIndex() - c.maxAhead, 0},
	} {
		passed, late := c.age(NewState(Live, 1, c.pack(now+ahead, 2, 3, 0)), now)
		assert.Equal(t, want, [2]uint64{passed, late}, "%d", ahead)
	}
}

// TestProportion: proportion converts a used part from one unit to another, and rounds up.
func TestProportion(t *testing.T) {
	for _, c := range []struct{ part, from, to, want uint64 }{
		{3, 5, 10, 6}, {0, 5, 10, 0}, {1, 3, 1, 1}, {2, 3, 1, 1}, {4, 3, 1, 2}, {1, 1 << 63, 1, 1}, {7, 3, 3, 7},
		{1 << 50, 1<<50 + 1, 1, 1}, {1 << 63, 1, 2, math.MaxUint64}, {1 << 63, 2, 4, math.MaxUint64}, {1<<63 - 1, 1, 2, 1<<64 - 2},
	} {
		assert.Equal(t, c.want, proportion(c.part, c.from, c.to), "%+v", c)
	}
}

// TestAConversionRoundsUp: a conversion rounds a part of a tick up, so waits do not become shorter.
func TestAConversionRoundsUp(t *testing.T) {
	bucket := func(tokens float64, period time.Duration, burst uint64) *TokenBucket {
		b, err := NewTokenBucket(tokens, period, burst)
		require.NoError(t, err)
		return &b
	}
	const nanos = int64(1 << 50)
	for name, c := range map[string]struct {
		from, to     *TokenBucket
		debt         uint64
		want, behind uint64
		unknown      uint64 // the debt if it takes the same time to come back, because the key is not known
		ahead        uint64 // the debt if tokens were granted for a time two nanoseconds later
		shortly      uint64 // the debt if the last reservation is due in a nanosecond
	}{
		"exact":  {bucket(1, 3, 1), bucket(1, 2, 1), 2, 2, 2, 2, 2, 2},
		"slower": {bucket(1, 3, 2), bucket(1, 30, 1), 7, 70, 60 + 1, 7, 52, 61},
		"faster": {bucket(1, 30, 2), bucket(1, 3, 1), 70, 7, 6 + 10, 70, 9, 8},
		"half":   {bucket(2, 3, 1), bucket(1, 2, 1), 2, 2, 2, 1, 1, 2},
		"long":   {bucket(1, 1<<51, 1), bucket(1, 1<<51, 1), 7, 7, 7, 7, 7, 7},
	} {
		s := NewState(Live, 3, c.from.Ticks(nanos)+c.debt)
		change := Change{Before: c.from.token, After: c.to.token, Highest: c.from.burst}
		assert.Equal(t, c.to.Ticks(nanos)+c.want, c.to.Convert(c.from, s, nanos, change), name)
		change.Promised = nanos + 1000
		assert.Equal(t, c.to.Ticks(nanos)+c.behind, c.to.Convert(c.from, s, nanos, change), "%s, reserved", name)
		change.Latest = nanos + 2
		assert.Equal(t, c.to.Ticks(nanos)+max(c.behind, c.ahead), c.to.Convert(c.from, s, nanos, change), "%s, ahead", name)
		change.Latest = nanos + 1<<51
		assert.Equal(t, c.to.Ticks(nanos)+max(c.behind, c.unknown), c.to.Convert(c.from, s, nanos, change), "%s, until idle", name)
		change.Promised, change.Latest = nanos+1, 0
		assert.Equal(t, c.to.Ticks(nanos)+c.shortly, c.to.Convert(c.from, s, nanos, change), "%s, reserved for a moment", name)
		assert.Equal(t, c.to.Ticks(nanos)+c.unknown, c.to.Convert(c.from, s, nanos, Change{}), "%s, of a quota", name)
	}
}

// TestAConversionHasRoomForALead: a record owes at most 2^51 ticks, and additionally the ticks that were granted ahead
// of the clock.
func TestAConversionHasRoomForALead(t *testing.T) {
	from, err := NewTokenBucket(1, 1<<49, 2)
	require.NoError(t, err)
	to, err := NewTokenBucket(1, 1<<51, 1)
	require.NoError(t, err)
	const nanos = int64(1 << 50)
	s := NewState(Live, 3, from.Ticks(nanos)+1<<50+9)
	for lead, want := range map[int64]uint64{0: 1 << 51, 1: 1<<51 + 1, 1 << 30: 1<<51 + 1<<30, 1 << 52: 1<<51 + 1<<50} {
		c := Change{Before: from.token, After: to.token, Highest: maxDebt, Latest: nanos + lead}
		payload := to.Convert(&from, s, nanos, c)
		assert.Equal(t, to.Ticks(nanos)+want, payload, lead)
		assert.Equal(t, want, debt(NewState(Live, 0, payload), to.Ticks(nanos)), "it is not taken for past")
	}
}

// TestAConversionFits: a count that is too large for the new field becomes the largest one that fits.
func TestAConversionFits(t *testing.T) {
	from, err := NewFixedWindow(1, 1<<20, time.Minute, false)
	require.NoError(t, err) // ticks of 64 ns
	to, err := NewFixedWindow(100, 127, time.Minute, false)
	require.NoError(t, err)
	const now = int64(1 << 40)
	left, taken := to.read(State(to.Convert(&from, State(from.pack(from.Ticks(now)+1000, 1<<19)), now, Change{})), uint64(now))
	assert.Equal(t, []uint64{64_000, 127}, []uint64{left, taken})
	left, taken = to.read(State(to.Convert(&from, State(from.pack(from.Ticks(now)+1000, 1)), now, Change{})), uint64(now))
	assert.Equal(t, []uint64{64_000, 1}, []uint64{left, taken})

	sliding, err := NewSlidingWindow(1, 1<<20, time.Minute)
	require.NoError(t, err)
	small, err := NewSlidingWindow(100, 127, time.Minute)
	require.NoError(t, err)
	index := sliding.clock.quo(now)
	c := small.read(State(small.Convert(&sliding, State(sliding.pack(counts{index: index, previous: 1 << 19, current: 1 << 18})), now, Change{})), uint64(now))
	assert.Equal(t, []uint64{index, 127, 127}, []uint64{c.index, c.previous, c.current})
}

// TestWhatALogCanFollow: a log can take over the rings of another log if its limit is at most the size of these rings
// and their ticks can represent its window.
func TestWhatALogCanFollow(t *testing.T) {
	log := func(limit, most uint64, window time.Duration) *SlidingLog {
		l, err := NewSlidingLog(limit, most, window)
		require.NoError(t, err)
		return &l
	}
	fine, coarse := log(5, 7, time.Minute), log(1, 4096, time.Minute) // ticks of 1 ns and of 4096 ns
	assert.Equal(t, time.Microsecond, fine.shortest())
	assert.Equal(t, 2*time.Duration(1<<43), fine.longest())
	assert.Equal(t, 4096*200_000*time.Nanosecond, coarse.shortest())
	assert.Equal(t, 2*time.Duration(1<<35), coarse.longest())
	assert.Equal(t, MaxWindow, log(1, 1, MaxWindow).longest())
	for _, c := range []struct {
		before *SlidingLog
		limit  uint64
		window time.Duration
		length uint64
	}{
		{fine, 7, time.Minute, 60e9}, {fine, 8, time.Minute, 0}, {fine, 1, time.Microsecond, 1000},
		{fine, 1, 2 << 43, 2 << 43}, {fine, 1, 2<<43 + 1, 0},
		{coarse, 4096, 4096 * 200_000, 200_001}, {coarse, 7, 4096*200_000 - 1, 0}, {coarse, 7, 4096*200_000 + 1, 200_002},
		{coarse, 7, 2 << 35, 2<<23 + 1}, {coarse, 7, 2<<35 + 1, 0},
	} {
		to := *fine
		to.tokens, to.size, to.window = c.limit, c.limit, c.window
		following, err := to.Following(c.before)
		assert.Equal(t, c.length > 0, err == nil, "%+v: %v", c, err)
		if err == nil {
			want := *c.before
			want.tokens, want.window, want.length, want.retention = c.limit, c.window, c.length, c.length
			assert.Equal(t, &want, following)
		}
	}
	_, err := fine.Following(&FixedWindow{})
	assert.ErrorContains(t, err, "cannot take over the records of a *atomicbucket.FixedWindow")
}
