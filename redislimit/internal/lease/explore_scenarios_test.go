//go:build explore

package lease

import "cmp"

// A scenario is what one exploration runs on a key with a lease: every interleaving of the calls of its threads.
type scenario struct {
	name      string
	limit     uint64 // of the store; 0 means 16: then a lease has at most 8 tokens, and asks for 4
	overdraft uint64 // 0 means 2
	others    uint64 // charged to other nodes
	asked     uint64 // admitted by asking the store, before there was a lease
	debt      uint64 // the lease begins with this debt
	before    []call
	threads   [][]call
	large     bool // explored with -large only
}

// terms returns the terms for a scenario.
func (s scenario) terms() *Terms {
	return &Terms{
		Limit: cmp.Or(s.limit, 16), PerSecond: 1e8, Nodes: 1, Overdraft: cmp.Or(s.overdraft, 2),
		Ahead: 10, Life: 100, Random: func() float64 { return 0 },
	}
}

func together(calls ...call) (threads [][]call) {
	for _, c := range calls {
		threads = append(threads, []call{c})
	}
	return threads
}

var (
	one, two = takes(1), takes(2)

	// These calls prepare a lease. After hasTwo, two tokens are in hand; after hasOne, one token; after hasFour, four
	// tokens.
	hasTwo  = []call{one, one.at(10), one.at(20)}
	hasOne  = []call{one, one.at(10), one.at(20), one.at(21)}
	hasFour = []call{one, one.at(1), one.at(2)}

	// No token is in hand, and Expire has noticed that.
	drained = []call{one, looks().at(late)}

	late = int64(200) // by then tokens have been in hand too long
)

var scenarios = []scenario{
	// These scenarios have a new lease, without tokens in hand. They try the overdraft and the first renewal.
	{name: "one taker", threads: together(one)},
	{name: "two takers of a new lease", threads: together(one, one)},
	{name: "three takers of a new lease", threads: together(one, one, one)},
	{name: "takers of 2 and 1 of a new lease", threads: together(two, one)},
	{name: "takers of more than the overdraft", threads: together(takes(3), takes(3), one)},
	{name: "two takers, and the store has nothing", others: 16, threads: together(one, one)},
	{name: "two takers, and the store has little", others: 9, threads: together(two, one)},
	{name: "two takers twice, and the store has nothing", others: 16, threads: [][]call{{one, one.at(20)}, {one, one.at(20)}}},
	{name: "a lease that begins with a debt", debt: 2, threads: together(one, two)},
	{name: "two takers twice", threads: [][]call{{one, one.at(20)}, {one, one.at(20)}}},

	// Tokens are in hand.
	{name: "two takers of the last token", before: hasOne, threads: together(one.at(30), one.at(30))},
	{name: "three takers of two tokens", before: hasTwo, threads: together(one.at(30), one.at(30), one.at(30))},
	{name: "takers of 2 and 1 of two tokens", before: hasTwo, threads: together(two.at(30), one.at(30))},
	{name: "a taker of more than is in hand", before: hasTwo, threads: together(takes(3).at(30), one.at(30))},
	{name: "three takers of four tokens", before: hasFour, threads: together(one.at(20), one.at(20), one.at(20))},
	{
		name: "a taker of more than is in hand, and that is much", limit: 32, overdraft: 16, asked: 1,
		before:  []call{two, two.at(1), two.at(2), refunds(7).at(2), refills(7)},
		threads: together(takes(16).at(3), one.at(3)),
	},
	{name: "takers while it is refused", others: 14, before: hasTwo, threads: [][]call{{one.at(30), one.at(50)}, {two.at(30)}}},

	// A look checks a lease for tokens that have been in hand too long, and for debt that is left over.
	{name: "a look at two tokens beside a taker", before: hasTwo, threads: together(one.at(late), looks().at(late))},
	{name: "a look at two tokens beside two takers", before: hasTwo, threads: together(one.at(late), one.at(late), looks().at(late))},
	{name: "a look at four tokens beside a taker", before: hasFour, threads: together(one.at(late), looks().at(late))},
	{name: "looks at a token that is kept beside a taker", before: hasOne, threads: [][]call{{looks().at(30), looks().at(40)}, {one.at(40)}}},
	{name: "looks at a debt beside a taker", debt: 1, threads: [][]call{{looks(), looks()}, {one}}},
	{name: "two looks beside a taker twice", before: hasTwo, threads: [][]call{{looks().at(late), looks().at(late + 20)}, {one.at(late), one.at(late + 20)}}},

	// A lease is retired and the key gets its next lease.
	{name: "a lease goes beside a taker", before: []call{looks()}, threads: together(one.at(late), looks().at(late))},
	{name: "a lease goes beside two takers", before: []call{looks()}, threads: together(one.at(late), one.at(late), looks().at(late))},
	{name: "a used lease and three looks", before: []call{one, one}, threads: [][]call{{looks().at(late), looks().at(late + 100), looks().at(late + 200)}, {one.at(late + 200)}}},
	{name: "two looks at a lease that is used", before: []call{looks()}, threads: [][]call{{looks().at(late)}, {one.at(late), one.at(late)}}},
	{name: "looks at a lease that renews for others", before: []call{looks()}, threads: [][]call{{looks().at(late), looks().at(late + 20)}, {takes(3).at(late)}}},

	{name: "a lease that cannot be paid, and three looks", others: 16, before: []call{one}, threads: [][]call{{looks().at(12), looks().at(13), looks().at(14)}, {two.at(13), two.at(14)}}},

	// Tokens are refunded.
	{name: "refund beside two takers", before: hasTwo, threads: together(refunds(1).at(30), one.at(30), one.at(30))},
	{name: "refund beside a look", before: hasTwo, threads: together(refunds(1).at(late), looks().at(late))},
	{name: "refund to a lease that goes", before: drained, threads: together(refunds(1).at(late), looks().at(late))},
	{name: "refund and taker of a lease that goes", before: drained, threads: [][]call{{refunds(1).at(late), one.at(late)}, {looks().at(late)}, {one.at(late)}}},
	{name: "refunds beside a renewal", before: hasTwo, threads: [][]call{{refunds(1).at(30), refunds(1).at(30)}, {two.at(30)}}},
	{name: "refunds of more than there is room for", limit: 8, asked: 2, before: hasTwo, threads: together(refunds(2).at(30), refunds(2).at(30), one.at(30))},

	{name: "refund beside a large renewal", before: hasFour, threads: together(one.at(3), refunds(2).at(3))},
	{name: "refund between looks", asked: 1, before: []call{looks()}, threads: [][]call{{looks().at(late)}, {refunds(1).at(late), one.at(late)}}},

	// Larger scenarios.
	{name: "three takers twice", threads: [][]call{{one, one.at(20)}, {one, one.at(20)}, {one, one.at(20)}}, large: true},
	{name: "two looks beside two takers twice", before: hasTwo, threads: [][]call{{looks().at(late), looks().at(late + 20)}, {one.at(late), one.at(late + 20)}, {one.at(late), one.at(late + 20)}}, large: true},
	{name: "a lease goes beside two takers twice", before: []call{looks()}, threads: [][]call{{looks().at(late), looks().at(late)}, {one.at(late), one.at(late)}, {one.at(late), one.at(late)}}, large: true},
	{name: "four takers of a new lease", threads: together(one, one, one, two), large: true},
}
