package lease

// A pace is the rate at which tokens are spent, per second. low is the smaller rate of the last two answered renewals.
// One renewal is not enough, because two requests may be close together by chance.
type pace struct{ last, low float64 }

func (p *pace) note(perSecond float64) {
	p.last, p.low = perSecond, min(perSecond, p.last)
}
