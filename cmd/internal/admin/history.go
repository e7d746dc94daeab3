package admin

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/limits"
)

const points = 300

// A span is a time range of the charts, in steps of seconds.
type span struct {
	name   string // the name by which the page requests it
	step   uint64 // ticks per step; a tick is a second
	points uint64
}

// spans has the ranges. All together take 11 KiB per rule.
var spans = [...]span{{"5m", 1, points}, {"1h", 10, 360}, {"24h", 300, 288}}

// plottedOutcomes has the outcomes with a line in the charts.
var plottedOutcomes = [...]limits.Outcome{limits.Allowed, limits.Refused, limits.ShadowRefused}

// A history has the requests per second of each rule for the last day. It is recorded even without an open page, so
// that a new page shows the past.
type history struct {
	mu    sync.Mutex
	seq   uint64 // number of ticks so far
	last  time.Time
	rules map[string]*track
}

type track struct {
	before totals
	rates  [numOutcomes]float32 // at the last tick
	rings  [len(spans)]ring
}

// A ring has the mean rates of the last steps of a span. Step n ends at tick n * step. Its rate has the index n %
// points.
type ring struct {
	rates  [len(plottedOutcomes)][]float32
	counts [len(plottedOutcomes)]uint64 // requests since the current step began
	start  time.Time                    // when the current step began
}

func newTrack(counts totals, start time.Time) *track {
	t := &track{before: counts}
	for i := range t.rings {
		t.rings[i].start = start
		for o := range plottedOutcomes {
			t.rings[i].rates[o] = make([]float32, spans[i].points)
		}
	}
	return t
}

// tick records the rates since the last tick, forgets removed rules, and starts tracks for new rules.
func (h *history) tick(now time.Time, names []string, read func(string) totals) (seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.last
	if before.IsZero() {
		before = now
	}
	h.last = now
	h.seq++
	rules := make(map[string]*track, len(names))
	for _, name := range names {
		counts := read(name)
		t := h.rules[name]
		if t == nil {
			t = newTrack(counts, before)
		}
		t.record(h.seq, counts, before, now)
		rules[name] = t
	}
	h.rules = rules
	return h.seq
}

func (t *track) record(seq uint64, counts totals, before, now time.Time) {
	for o := range counts {
		t.rates[o] = perSecond(counts[o]-t.before[o], now.Sub(before).Seconds())
	}
	for i := range t.rings {
		r := &t.rings[i]
		elapsed := now.Sub(r.start).Seconds()
		for line, o := range plottedOutcomes {
			r.counts[line] += counts[o] - t.before[o]
			if seq%spans[i].step == 0 {
				r.rates[line][seq/spans[i].step%spans[i].points] = perSecond(r.counts[line], elapsed)
				r.counts[line] = 0
			}
		}
		if seq%spans[i].step == 0 {
			r.start = now
		}
	}
	t.before = counts
}

// perSecond returns a rate, rounded to a tenth, or to a thousandth below one.
func perSecond(n uint64, seconds float64) float32 {
	if seconds <= 0 {
		return 0
	}
	rate, scale := float64(n)/seconds, 10.
	if rate < 1 {
		scale = 1000
	}
	return float32(math.Round(rate*scale) / scale)
}

func (h *history) latest() (seq uint64, rates map[string][numOutcomes]float32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rates = make(map[string][numOutcomes]float32, len(h.rules))
	for name, t := range h.rules {
		rates[name] = t.rates
	}
	return h.seq, rates
}

// A historyView is a history for the page: the rates of each rule and outcome, oldest first.
type historyView struct {
	Seq    uint64                          `json:"seq"`
	Step   uint64                          `json:"step"`   // seconds between two points
	Points uint64                          `json:"points"` // the largest number of points
	Rules  map[string]map[string][]float32 `json:"rules"`
}

// view returns the history of a span. It returns false if there is no such span.
func (h *history) view(name string) (historyView, bool) {
	i := slices.IndexFunc(spans[:], func(s span) bool { return s.name == name })
	if i < 0 {
		return historyView{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &spans[i]
	rules := make(map[string]map[string][]float32, len(h.rules))
	for name, t := range h.rules {
		lines := make(map[string][]float32, len(plottedOutcomes))
		for line, o := range plottedOutcomes {
			lines[o.String()] = s.line(t.rings[i].rates[line], h.seq/s.step)
		}
		rules[name] = lines
	}
	return historyView{Seq: h.seq, Step: s.step, Points: s.points, Rules: rules}, true
}

// line returns the rates in a ring, oldest first. The parameter steps is the number of all steps so far.
func (s *span) line(rates []float32, steps uint64) []float32 {
	n := min(steps, s.points)
	line := make([]float32, 0, n)
	for step := steps - n + 1; step <= steps; step++ {
		line = append(line, rates[step%s.points])
	}
	return line
}
