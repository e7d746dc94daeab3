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

// commonPeriods are periods that people often configure.
var commonPeriods = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 1500 * time.Millisecond, 2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 4 * time.Second,
	5 * time.Second, 6 * time.Second, 8 * time.Second, 10 * time.Second, 12 * time.Second, 15 * time.Second, 20 * time.Second,
	30 * time.Second, 45 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 12 * time.Hour, 24 * time.Hour}

// search returns the best candidate of each kind, the best of all candidates first.
func (f *fitter) search(refusals bool) []candidate {
	kinds := kinds
	if f.hasQueue { // only a bucket determines how long requests wait
		kinds = kinds[:1]
	}
	candidates := make([]candidate, len(kinds))
	for i, kind := range kinds {
		best := candidate{limit: Limit{Kind: kind, Limit: check.Limit{Tokens: 1, Per: time.Second, Burst: 1}}, misfits: math.MaxInt - 1}
		s := &searcher{fitter: f, best: &best, refusals: refusals}
		switch kind {
		case check.Bucket:
			s.bucket()
		case check.FixedWindow, check.SlidingExact:
			s.window()
		default:
			s.phasedWindow(candidates)
		}
		candidates[i] = best
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return a.misfits - b.misfits })
	if best := candidates[0].limit; best.Kind == check.FixedWindow || best.Kind == check.SlidingExact {
		(&searcher{fitter: f, best: &candidates[0], refusals: refusals}).commonPeriod()
	}
	return candidates
}

type searcher struct {
	*fitter
	best     *candidate
	refusals bool
}

// periods returns periods to try: the common periods, and a series of periods. In the series, each period is longer
// than the previous period by the fraction step. No period is longer than the log.
func (f *fitter) periods(step float64) (periods []time.Duration) {
	for _, d := range commonPeriods {
		if d <= f.span {
			periods = append(periods, d)
		}
	}
	shortest := max(5*time.Millisecond, f.span/5000)
	for d := float64(shortest); d < float64(f.span); d *= 1 + step {
		periods = append(periods, time.Duration(d))
	}
	return periods
}

// counts returns the sizes of a limit to try: the most tokens that a key has used, and slightly fewer. If most refusals
// came after far fewer tokens, it also returns sizes around that number.
func (s *searcher) counts(l Limit) (counts []uint64) {
	maxUsed, typical := s.maxUsed(l)
	if s.refusals {
		maxUsed = s.initialAdmissions()
	}
	for n := range min(maxUsed, 4) {
		counts = append(counts, maxUsed-n)
	}
	if !s.refusals && typical+3 < maxUsed {
		counts = append(counts, typical+1, typical, max(typical, 2)-1)
	}
	return counts
}

func (s *searcher) tryCounts(c *candidate, l Limit) {
	for _, n := range s.counts(l) {
		if l.Kind == check.Bucket {
			l.Burst = n
		} else {
			l.Tokens = n
		}
		c.try(s.fitter, l)
	}
}

// periodBounds returns the shortest and the longest period that explain as many decisions as the best one. It tries
// steps of a hundredth of the best period. If windows begin at a phase, few periods fit the phase, so periodBounds uses
// the periods that were tried.
func (s *searcher) periodBounds() (shortest, longest time.Duration) {
	best := *s.best
	shortest, longest = best.limit.Per, best.limit.Per
	switch kind := best.limit.Kind; {
	case !s.hasReturned:
		return shortest, longest
	case kind != check.Bucket && kind != check.FixedWindow && kind != check.SlidingExact:
		return best.shortest, best.longest
	}
	explains := func(period time.Duration) bool {
		l, trial := best.limit, candidate{misfits: best.misfits + 1}
		l.Per = max(period, 1)
		s.tryCounts(&trial, l)
		return trial.limit.Per > 0
	}
	for i := 1; i < 70 && explains(best.limit.Per*time.Duration(100-i)/100); i++ {
		shortest = best.limit.Per * time.Duration(100-i) / 100
	}
	for i := 1; i < 100 && explains(best.limit.Per*time.Duration(100+i)/100); i++ {
		longest = best.limit.Per * time.Duration(100+i) / 100
	}
	return shortest, longest
}

// capacityBounds returns the fewest and the most tokens of a full key that explain as many decisions as the best
// number. It uses the best period, and tries numbers up to a hundred away.
func (s *searcher) capacityBounds() (fewest, most uint64) {
	best := *s.best
	explains := func(n uint64) bool {
		l := best.limit
		if l.Kind == check.Bucket || l.Kind == check.BatchRefill {
			l.Burst = n
		} else {
			l.Tokens = n
		}
		return n > 0 && s.misfits(l, best.misfits) <= best.misfits
	}
	fewest = best.limit.Capacity(best.limit.Kind)
	most = fewest
	for most-fewest < 100 && explains(fewest-1) {
		fewest--
	}
	for start := most; most-start < 100 && explains(most+1); {
		most++
	}
	return fewest, most
}

func (s *searcher) bucket() {
	try := func(token time.Duration) {
		l := Limit{Kind: check.Bucket, Limit: check.Limit{Tokens: 1, Per: max(token, 1)}, Refusals: s.refusals}
		s.tryCounts(s.best, l)
	}
	if s.hasQueue { // requests leave the queue at intervals of the time for one token
		for i := -6; i <= 6; i++ {
			try(time.Duration(float64(s.queueInterval) * (1 + float64(i)*0.005)))
		}
		s.roundPeriod()
		return
	}
	for _, token := range s.periods(0.03) {
		try(token)
	}
	for _, step := range []float64{0.01, 0.003, 0.001} {
		middle := float64(s.best.limit.Per)
		for i := -6; i <= 6; i++ {
			try(time.Duration(middle * (1 + float64(i)*step)))
		}
	}
	s.roundPeriod()
}

// roundPeriod replaces the time per token by a common time that explains as many decisions.
func (s *searcher) roundPeriod() {
	token := s.best.limit.Per
	for _, period := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		n := uint64(math.Round(float64(period) / float64(token)))
		deviation := math.Abs(float64(period)/float64(n) - float64(token))
		if n > 0 && deviation <= maxDeviation*float64(token) && s.replaceBest(func(l *Limit) { l.Tokens, l.Per = n, period }) {
			return
		}
	}
}

func (s *searcher) window() {
	kind := s.best.limit.Kind
	try := func(period time.Duration) {
		l := Limit{Kind: kind, Limit: check.Limit{Per: max(period, 1), Burst: 1}, Refusals: s.refusals}
		s.tryCounts(s.best, l)
	}
	for _, period := range s.periods(0.015) {
		try(period)
	}
	middle := float64(s.best.limit.Per)
	for i := -8; i <= 8; i++ {
		try(time.Duration(middle * (1 + float64(i)*0.002)))
	}
}

// commonPeriod replaces a period by a common one nearby. On a busy machine, the true period may explain slightly fewer
// decisions than another. The kinds of limits must be compared without this loss, so commonPeriod is called after the
// comparison.
func (s *searcher) commonPeriod() {
	for _, period := range commonPeriods {
		if deviation := float64(period) - float64(s.best.limit.Per); math.Abs(deviation) <= maxDeviation*float64(period) {
			s.replaceBest(func(l *Limit) { l.Per = period })
			return
		}
	}
}

// maxDeviation is the largest relative difference between the best numbers and their replacements.
const maxDeviation = 0.04

// replaceBest replaces the best numbers by changed numbers if the new numbers explain nearly as many decisions. It
// reports whether it has replaced them.
func (s *searcher) replaceBest(change func(*Limit)) bool {
	trial := candidate{misfits: math.MaxInt - 1}
	l := s.best.limit
	change(&l)
	s.tryCounts(&trial, l)
	if trial.misfits > s.best.misfits+2+len(s.events)/50 {
		return false
	}
	*s.best = trial
	return true
}

// phasedWindow looks for a limit whose windows begin at a phase after the multiples of the period.
func (s *searcher) phasedWindow(candidates []candidate) {
	periods := s.periods(10)
	for _, other := range candidates { // tries the period of another kind, and the time in which its key fills
		if other.limit.Per > 0 {
			l := other.limit
			periods = append(periods, l.Per, time.Duration(float64(l.Per)*float64(l.Capacity(l.Kind))/float64(l.Tokens)))
		}
	}
	for _, period := range periods {
		if period < 5*time.Millisecond || period > s.span {
			continue
		}
		if s.best.limit.Kind == check.SlidingEstimate {
			s.tryPhase(period, Anchored, candidates[0].limit)
		}
		for i := range phases {
			s.tryPhase(period, period*time.Duration(i)/phases, candidates[0].limit)
		}
	}
	for width := s.best.limit.Per / phases; width > time.Millisecond && s.best.limit.Phase != Anchored; width /= 4 {
		middle := s.best.limit.Phase
		for i := -4; i <= 4; i++ {
			phase := (middle + width*time.Duration(i)/4 + s.best.limit.Per) % s.best.limit.Per
			s.tryPhase(s.best.limit.Per, phase, candidates[0].limit)
		}
	}
}

// tryPhase tries windows of the given length that begin at the given phase. For batch refills, it tries half to
// twice the rate of bucket, the best token bucket.
func (s *searcher) tryPhase(period, phase time.Duration, bucket Limit) {
	l := Limit{Kind: s.best.limit.Kind, Limit: check.Limit{Per: period, Burst: 1}, Phase: phase, Refusals: s.refusals}
	if l.Kind != check.BatchRefill {
		s.tryCounts(s.best, l)
		return
	}
	batch := float64(bucket.Tokens) / float64(bucket.Per) * float64(period)
	burst := s.initialAdmissions()
	// These are the refills between two other kinds of limits. With a refill of one token, the limit is a bucket. With
	// a refill of the complete burst, it is a window.
	for l.Tokens = max(2, uint64(batch/2)); l.Tokens < burst && l.Tokens <= uint64(2*batch)+2; l.Tokens++ {
		if l.Tokens <= 24 || math.Abs(float64(l.Tokens)-batch) <= 1 {
			for _, l.Burst = range []uint64{burst, burst - 1} {
				s.best.try(s.fitter, l)
			}
		}
	}
}

// findQueued finds how many requests of a burst wait for their turn. The times at which requests leave the queue fit a
// smaller bucket.
func (f *fitter) findQueued(l *Limit) {
	departures := &fitter{tolerance: f.tolerance}
	for _, e := range f.events {
		if e.Allowed {
			e.At, e.Wait = e.At+e.Wait, 0
			departures.events = append(departures.events, e)
		}
	}
	slices.SortStableFunc(departures.events, func(a, b event) int { return int(a.At - b.At) })
	for i := range departures.events { // the lengths of the intervals may be inexact
		departures.events[i].tolerance += f.queueInterval / 4
	}
	for burst := uint64(1); burst < l.Burst; burst++ {
		smaller := *l
		if smaller.Burst = burst; departures.misfits(smaller, len(departures.events)/10) <= len(departures.events)/10 {
			l.Queued = l.Burst - burst
			return
		}
	}
}
