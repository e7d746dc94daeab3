package fit

import (
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

type candidate struct {
	limit   Limit
	misfits int
	// The limit explains as many decisions with any period from shortest to longest.
	shortest, longest time.Duration
}

// try makes l the candidate's limit if l explains more decisions than the current limit.
func (c *candidate) try(f *fitter, l Limit) {
	switch n := f.misfits(l, c.misfits); {
	case n < c.misfits:
		*c = candidate{l, n, l.Per, l.Per}
	case n == c.misfits:
		c.shortest, c.longest = min(c.shortest, l.Per), max(c.longest, l.Per)
	}
}

// kinds has the kinds of limits to search for, the simplest first. If two kinds explain the log equally well, the
// earlier kind is used.
var kinds = []check.Promise{check.Bucket, check.FixedWindow, check.AlignedWindow, check.SlidingExact, check.SlidingEstimate,
	check.BatchRefill}

// phases is how many start times of windows the first pass tries.
const phases = 32

// The variable usual has periods that people often configure.
var usual = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 1500 * time.Millisecond, 2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 4 * time.Second,
	5 * time.Second, 6 * time.Second, 8 * time.Second, 10 * time.Second, 12 * time.Second, 15 * time.Second, 20 * time.Second,
	30 * time.Second, 45 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 12 * time.Hour, 24 * time.Hour}

// search returns the best candidate of each kind, the best of all candidates first.
func (f *fitter) search(refusals bool) []candidate {
	kinds := kinds
	if f.queued { // only a bucket determines how long requests wait
		kinds = kinds[:1]
	}
	all := make([]candidate, len(kinds))
	for i, kind := range kinds {
		best := candidate{limit: Limit{Kind: kind, Limit: check.Limit{Tokens: 1, Per: time.Second, Burst: 1}}, misfits: math.MaxInt - 1}
		of := &finder{fitter: f, best: &best, refusals: refusals}
		switch kind {
		case check.Bucket:
			of.bucket()
		case check.FixedWindow, check.SlidingExact:
			of.window()
		default:
			of.phased(all)
		}
		all[i] = best
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.misfits - b.misfits })
	if first := all[0].limit; first.Kind == check.FixedWindow || first.Kind == check.SlidingExact {
		(&finder{fitter: f, best: &all[0], refusals: refusals}).usualPeriod()
	}
	return all
}

type finder struct {
	*fitter
	best     *candidate
	refusals bool
}

// periods returns periods to try: the usual periods, and a series of periods. In the series, each period is longer than
// the previous period by the fraction step. No period is longer than the log.
func (f *fitter) periods(step float64) (all []time.Duration) {
	for _, d := range usual {
		if d <= f.span {
			all = append(all, d)
		}
	}
	shortest := max(5*time.Millisecond, f.span/5000)
	for d := float64(shortest); d < float64(f.span); d *= 1 + step {
		all = append(all, time.Duration(d))
	}
	return all
}

// counts returns the sizes of a limit to try: the most tokens that a key has used, and slightly fewer. If most refusals
// came after far fewer tokens, it also returns sizes around that number.
func (of *finder) counts(l Limit) (all []uint64) {
	most, usual := of.most(l)
	if of.refusals {
		most = of.first()
	}
	for n := range min(most, 4) {
		all = append(all, most-n)
	}
	if !of.refusals && usual+3 < most {
		all = append(all, usual+1, usual, max(usual, 2)-1)
	}
	return all
}

func (of *finder) tryCounts(c *candidate, l Limit) {
	for _, n := range of.counts(l) {
		if l.Kind == check.Bucket {
			l.Burst = n
		} else {
			l.Tokens = n
		}
		c.try(of.fitter, l)
	}
}

// bounds returns the shortest and the longest period that explain as many decisions as the best one. It tries steps of
// a hundredth of the best period. If windows begin at a phase, few periods fit the phase, so bounds uses the periods
// that were tried.
func (of *finder) bounds() (shortest, longest time.Duration) {
	best := *of.best
	shortest, longest = best.limit.Per, best.limit.Per
	switch kind := best.limit.Kind; {
	case !of.returned:
		return shortest, longest
	case kind != check.Bucket && kind != check.FixedWindow && kind != check.SlidingExact:
		return best.shortest, best.longest
	}
	explains := func(per time.Duration) bool {
		l, near := best.limit, candidate{misfits: best.misfits + 1}
		l.Per = max(per, 1)
		of.tryCounts(&near, l)
		return near.limit.Per > 0
	}
	for i := 1; i < 70 && explains(best.limit.Per*time.Duration(100-i)/100); i++ {
		shortest = best.limit.Per * time.Duration(100-i) / 100
	}
	for i := 1; i < 100 && explains(best.limit.Per*time.Duration(100+i)/100); i++ {
		longest = best.limit.Per * time.Duration(100+i) / 100
	}
	return shortest, longest
}

// numbers returns the fewest and the most tokens of a full key that explain as many decisions as the best number. It
// uses the best period, and tries numbers up to a hundred away.
func (of *finder) numbers() (fewest, most uint64) {
	best := *of.best
	explains := func(n uint64) bool {
		l := best.limit
		if l.Kind == check.Bucket || l.Kind == check.BatchRefill {
			l.Burst = n
		} else {
			l.Tokens = n
		}
		return n > 0 && of.misfits(l, best.misfits) <= best.misfits
	}
	fewest = best.limit.Capacity(best.limit.Kind)
	most = fewest
	for most-fewest < 100 && explains(fewest-1) {
		fewest--
	}
	for found := most; most-found < 100 && explains(most+1); {
		most++
	}
	return fewest, most
}

func (of *finder) bucket() {
	try := func(token time.Duration) {
		l := Limit{Kind: check.Bucket, Limit: check.Limit{Tokens: 1, Per: max(token, 1)}, Refusals: of.refusals}
		of.tryCounts(of.best, l)
	}
	if of.queued { // requests leave the queue at intervals of the time for one token
		for i := -6; i <= 6; i++ {
			try(time.Duration(float64(of.apart) * (1 + float64(i)*0.005)))
		}
		of.round()
		return
	}
	for _, token := range of.periods(0.03) {
		try(token)
	}
	for _, step := range []float64{0.01, 0.003, 0.001} {
		middle := float64(of.best.limit.Per)
		for i := -6; i <= 6; i++ {
			try(time.Duration(middle * (1 + float64(i)*step)))
		}
	}
	of.round()
}

// round replaces the time per token by a common time that explains as many decisions.
func (of *finder) round() {
	token := of.best.limit.Per
	for _, per := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		n := uint64(math.Round(float64(per) / float64(token)))
		off := math.Abs(float64(per)/float64(n) - float64(token))
		if n > 0 && off <= widest*float64(token) && of.instead(func(l *Limit) { l.Tokens, l.Per = n, per }) {
			return
		}
	}
}

func (of *finder) window() {
	kind := of.best.limit.Kind
	try := func(per time.Duration) {
		l := Limit{Kind: kind, Limit: check.Limit{Per: max(per, 1), Burst: 1}, Refusals: of.refusals}
		of.tryCounts(of.best, l)
	}
	for _, per := range of.periods(0.015) {
		try(per)
	}
	middle := float64(of.best.limit.Per)
	for i := -8; i <= 8; i++ {
		try(time.Duration(middle * (1 + float64(i)*0.002)))
	}
}

// usualPeriod replaces a period by a common one nearby. On a busy machine, the true period may explain slightly fewer
// decisions than another. The kinds of limits must be compared without this loss, so usualPeriod is called after the
// comparison.
func (of *finder) usualPeriod() {
	for _, per := range usual {
		if off := float64(per) - float64(of.best.limit.Per); math.Abs(off) <= widest*float64(per) {
			of.instead(func(l *Limit) { l.Per = per })
			return
		}
	}
}

// widest is the largest relative difference between the best numbers and their replacements.
const widest = 0.04

// The method instead replaces the best numbers by others if these explain nearly as many decisions. It reports whether
// it has.
func (of *finder) instead(change func(*Limit)) bool {
	near := candidate{misfits: math.MaxInt - 1}
	l := of.best.limit
	change(&l)
	of.tryCounts(&near, l)
	if near.misfits > of.best.misfits+2+len(of.events)/50 {
		return false
	}
	*of.best = near
	return true
}

// phased looks for a limit whose windows begin at a phase after the multiples of the period.
func (of *finder) phased(others []candidate) {
	periods := of.periods(10)
	for _, other := range others { // tries the period of another kind, and the time in which its key fills
		if other.limit.Per > 0 {
			l := other.limit
			periods = append(periods, l.Per, time.Duration(float64(l.Per)*float64(l.Capacity(l.Kind))/float64(l.Tokens)))
		}
	}
	for _, per := range periods {
		if per < 5*time.Millisecond || per > of.span {
			continue
		}
		if of.best.limit.Kind == check.SlidingEstimate {
			of.at(per, Anchored, others[0].limit)
		}
		for i := range phases {
			of.at(per, per*time.Duration(i)/phases, others[0].limit)
		}
	}
	for width := of.best.limit.Per / phases; width > time.Millisecond && of.best.limit.Phase != Anchored; width /= 4 {
		middle := of.best.limit.Phase
		for i := -4; i <= 4; i++ {
			phase := (middle + width*time.Duration(i)/4 + of.best.limit.Per) % of.best.limit.Per
			of.at(of.best.limit.Per, phase, others[0].limit)
		}
	}
}

// The method at tries windows of the given length that begin at the given phase. For batch refills, it tries half to
// twice the rate of bucket, the best token bucket.
func (of *finder) at(per, phase time.Duration, bucket Limit) {
	l := Limit{Kind: of.best.limit.Kind, Limit: check.Limit{Per: per, Burst: 1}, Phase: phase, Refusals: of.refusals}
	if l.Kind != check.BatchRefill {
		of.tryCounts(of.best, l)
		return
	}
	batch := float64(bucket.Tokens) / float64(bucket.Per) * float64(per)
	first := of.first()
	// These are the refills between two other kinds of limits. With a refill of one token, the limit is a bucket. With
	// a refill of the complete burst, it is a window.
	for l.Tokens = max(2, uint64(batch/2)); l.Tokens < first && l.Tokens <= uint64(2*batch)+2; l.Tokens++ {
		if l.Tokens <= 24 || math.Abs(float64(l.Tokens)-batch) <= 1 {
			for _, l.Burst = range []uint64{first, first - 1} {
				of.best.try(of.fitter, l)
			}
		}
	}
}

// queue finds how many requests of a burst wait for their turn. The times at which requests leave the queue fit a
// smaller bucket.
func (f *fitter) queue(l *Limit) {
	leaving := &fitter{tolerance: f.tolerance}
	for _, e := range f.events {
		if e.Allowed {
			e.At, e.Wait = e.At+e.Wait, 0
			leaving.events = append(leaving.events, e)
		}
	}
	slices.SortStableFunc(leaving.events, func(a, b event) int { return int(a.At - b.At) })
	for i := range leaving.events { // that there are intervals matters more than how long they are
		leaving.events[i].tolerance += f.apart / 4
	}
	for gone := uint64(1); gone < l.Burst; gone++ {
		smaller := *l
		if smaller.Burst = gone; leaving.misfits(smaller, len(leaving.events)/10) <= len(leaving.events)/10 {
			l.Queued = l.Burst - gone
			return
		}
	}
}
