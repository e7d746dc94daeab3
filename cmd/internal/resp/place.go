package resp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/engine"
)

// A place is the room for one request in flight. If it is not released, it counts for at least its lifetime. The
// lifetime has these bounds.
const (
	MinPlace = time.Second
	MaxPlace = sealed.MaxLifetime / 2 // a place may count for twice its lifetime, and its id must be valid that long
)

// maxPlaces is the highest limit of requests in flight.
const maxPlaces = 1<<16 - 1

// Places counts requests in flight. It outlives all Settings.
type Places struct {
	Limiter  *engine.Limiter
	Lifetime time.Duration // how long a place is counted if it is not released
	ids      Holds         // separate from the holds, whose used ids could otherwise fill the room for releases
}

// NewPlaces returns Places with room for a number of keys, and for the same number of ids of released places. The time
// comes from the function in the parameter now. If it is nil, the time comes from the system's clock.
func NewPlaces(lifetime time.Duration, keys int, overflow engine.OverflowPolicy, now func() time.Time, options ...engine.Option) (*Places, error) {
	uses, err := sealed.NewUses(2*lifetime, keys, options...) // a place may be counted for twice its lifetime
	if err != nil {
		return nil, err
	}
	if now != nil {
		uses.WithClock(now)
	}
	options = append([]engine.Option{engine.MaxKeys(keys), engine.Overflow(overflow), engine.MaxQuota(maxPlaces)}, options...)
	limiter, err := engine.New(engine.Concurrency(1, lifetime), options...)
	if err != nil {
		return nil, err
	}
	return &Places{limiter, lifetime, Holds{sealed.New("places of the door for clients of Redis"), uses}}, nil
}

// Close closes the Places. After that, no place can be taken or released.
func (p *Places) Close() error { return errors.Join(p.Limiter.Close(), p.ids.Uses.Close()) }

// requirePlaces returns the Places. If the server does not count requests in flight, requirePlaces answers the command
// with an error.
func (b *batch) requirePlaces(c *conn) (*Places, bool) {
	if c.settings.Places == nil {
		b.fail("ERR requests in flight are not counted: write for example in_flight: 1m in redis: of the rule file")
		return nil, false
	}
	return c.settings.Places, true
}

// enter answers WEIR.ENTER key LIMIT n [COST n].
func enter(c *conn, b *batch, args [][]byte) {
	places, ok := b.requirePlaces(c)
	if !ok {
		return
	}
	if !isWord(args[2], "LIMIT") || len(args) == 6 && !isWord(args[4], "COST") || len(args) == 5 {
		b.fail("ERR syntax error: want WEIR.ENTER key LIMIT n [COST n]")
		return
	}
	limit, ok := b.parseInRange("LIMIT", args[3], 1, maxPlaces)
	if !ok {
		return
	}
	cost := uint64(1)
	if len(args) == 6 {
		if cost, ok = b.parseInRange("COST", args[5], 1, maxPlaces); !ok {
			return
		}
	}
	if len(args[1]) > maxHoldKeys {
		b.fail(fmt.Sprintf("ERR a key of %d bytes: want at most %d of what is in flight", len(args[1]), maxHoldKeys))
		return
	}
	quota, err := places.Limiter.Quota(engine.Concurrency(limit, places.Lifetime))
	if err != nil {
		b.fail("ERR " + err.Error())
		return
	}
	d, receipt := places.Limiter.TakeReceipt(places.Limiter.KeyBytes(args[1]).With(quota), cost)
	b.counts.decision(d.Allowed)
	id := ""
	if d.Allowed {
		id = places.ids.Sealer.Seal(append(receipt.Append(nil), args[1]...), places.ids.Uses.Expires(2*places.Lifetime))
	}
	b.pairs(4)
	b.writeID(id)
	b.bulk("allowed")
	b.boolean(d.Allowed)
	b.bulk("limit")
	b.integer(int64(d.Limit))
	b.bulk("remaining")
	b.integer(int64(d.Remaining))
}

// release answers WEIR.RELEASE id. The answer is 1 for the first release while the place may still be counted.
// Otherwise it is 0. If there is no room to remember the release, the answer is an error, and the place stays taken.
// Otherwise a second release of the id would free another place.
func release(c *conn, b *batch, args [][]byte) {
	places, ok := b.requirePlaces(c)
	if !ok {
		return
	}
	opened, err := places.ids.Sealer.Open(string(args[1]))
	var receipt engine.Receipt
	if err == nil {
		text := opened.Receipt // sealed by this process
		receipt, err = places.Limiter.ParseReceipt(places.Limiter.KeyBytes(text[engine.ReceiptBytes:]), text[:engine.ReceiptBytes])
	}
	use := sealed.Late // after its lifetime, the place is forgotten, so the release need not be remembered
	if err == nil && !places.ids.Uses.IsLate(opened) {
		use, err = places.ids.Uses.Use(context.Background(), opened)
	}
	if err != nil {
		b.fail("ERR " + err.Error())
		return
	}
	switch use {
	case sealed.First:
		receipt.Release()
		b.integer(1)
	case sealed.NoRoom:
		b.fail("ERR no room to remember the release: the place stays taken until in_flight has passed or a later " +
			"release; raise max_keys, and start weir again")
	default:
		b.integer(0)
	}
}
