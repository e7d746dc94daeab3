package shard

import "github.com/weir-go/weir/atomicbucket"

// InFlight reports whether p is the plan of a limit in flight.
func (p *Plan) InFlight() bool { return p.inFlight != nil || p.entries != nil }

// tenurePayload returns the payload with which a tenure starts. For a limit in flight, the payload includes how many
// tenures near p have been ended by force. tenurePayload is called after the search for other records of the key (R16).
func (t *Table) tenurePayload(p Place, plan *Plan, payload uint64) uint64 {
	if plan.inFlight == nil {
		return payload
	}
	return plan.inFlight.Born(payload, t.Ends(p).word/endBegun)
}

// alwaysRefunds reports whether a refund by the receipt gives tokens back, whatever the key's quota is now. Tokens in
// flight come back even if the limit is now lower than their number, or if the quota grants nothing (R16).
func (p *Plan) alwaysRefunds(receipt *Receipt) bool { return p.inFlight != nil && receipt.IsKnown() }

// countForgotten counts the tokens that a record of a limit in flight drops because they were never given back. It is
// called after the compare-and-swap from the state s succeeds, so each token is counted once. For other algorithms it
// does nothing.
func (p *Plan) countForgotten(c *counters, s atomicbucket.State, nanos int64) {
	if p.inFlight == nil {
		return
	}
	if n := p.inFlight.Forgotten(s, p.inFlight.Ticks(nanos)); n > 0 {
		c.forgotten.Add(n)
	}
}
