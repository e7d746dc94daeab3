package lease

// A pace is the rate at which tokens are spent, in tokens per second, measured by the last two answered renewals. Two
// requests may be close together by chance, so one renewal does not prove a rate. Therefore the field low is the
// smaller of the rates that the two renewals measured.
type pace struct{ last, low float64 }

func (p *pace) note(perSecond float64) {
	p.last, p.low = perSecond, min(perSecond, p.last)
}
