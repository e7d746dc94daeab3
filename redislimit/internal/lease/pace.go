package lease

// A pace is how fast tokens are spent, in tokens a second, by the last two renewals that were answered. Two requests
// that happen to come close together are no pace: low is what both renewals agree on.
type pace struct{ last, low float64 }

func (p *pace) note(perSecond float64) {
	p.last, p.low = perSecond, min(perSecond, p.last)
}
