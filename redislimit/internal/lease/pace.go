package lease

// A pace is the rate at which tokens are spent, in tokens a second, by the last two answered renewals. Two requests
// that happen to be close together do not show a rate, so low is the smaller rate of the two renewals.
type pace struct{ last, low float64 }

func (p *pace) note(perSecond float64) {
	p.last, p.low = perSecond, min(perSecond, p.last)
}
