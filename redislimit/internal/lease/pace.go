package lease

// A pace is the rate at which tokens are spent, in tokens per second, measured by the last two answered renewals. Two
// requests that happen to be close together do not show a rate, so low is the smaller of the two renewals' rates.
type pace struct{ last, low float64 }

func (p *pace) note(perSecond float64) {
	p.last, p.low = perSecond, min(perSecond, p.last)
}
