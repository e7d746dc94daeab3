package shard

import "github.com/weir-go/weir/atomicbucket"

// InFlight reports whether it is the plan of a limit in flight.
func (p *Plan) InFlight() bool { return p.inFlight != nil || p.entries != nil }

// born numbers the tenure of the key at p that a payload begins, if it is of a limit in flight: by how many tenures
// near by have been ended by force. It is called after the search for other records of the key (R16).
func (t *Table) born(p Place, plan *Plan, payload uint64) uint64 {
	if plan.inFlight == nil {
		return payload
	}
	return plan.inFlight.Born(payload, t.Ends(p).word/endBegun)
}

// returns reports whether a refund by a receipt lowers a count whatever the quota of its key is by now: what is in
// flight leaves, also when the limit has become less than it, or none (R16).
func (p *Plan) returns(of *Receipt) bool { return p.inFlight != nil && of.IsKnown() }

// forget counts what a record of a limit in flight drops when a compare-and-swap from its state has succeeded, that of
// a call or a sweep at a time: the tokens that were never given back. So each is counted once, and only when its record
// moves on to a later period, or is forgotten as idle. Of other algorithms there is nothing to count.
func (p *Plan) forget(c *counters, s atomicbucket.State, nanos int64) {
	if p.inFlight == nil {
		return
	}
	if n := p.inFlight.Forgotten(s, p.inFlight.Ticks(nanos)); n > 0 {
		c.forgotten.Add(n)
	}
}
