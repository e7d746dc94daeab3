package admin

import (
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/httplimit"
)

// points is how many seconds the charts show.
const points = 300

// plotted are the outcomes that have a line in the charts.
var plotted = [...]httplimit.Outcome{httplimit.Allowed, httplimit.Refused, httplimit.ShadowRefused}

// A history holds the requests per second of each rule, for the last five minutes. It is kept also when no page is
// open, so that a new page shows the past.
type history struct {
	mu    sync.Mutex
	seq   uint64 // ticks so far
	last  time.Time
	rules map[string]*track
}

// A track is the history of one rule. The rate at tick seq stands at seq % points.
type track struct {
	before totals
	rates  [outcomes]float32 // at the last tick
	past   [len(plotted)][points]float32
}

// tick notes the rates since the last one. Rules that are gone are forgotten; a new one begins.
func (h *history) tick(now time.Time, names []string, read func(string) totals) (seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	elapsed := now.Sub(h.last).Seconds()
	h.last = now
	h.seq++
	rules := make(map[string]*track, len(names))
	for _, name := range names {
		counts := read(name)
		t := h.rules[name]
		if t == nil {
			t = &track{before: counts}
		}
		t.note(h.seq, counts, elapsed)
		rules[name] = t
	}
	h.rules = rules
	return h.seq
}

func (t *track) note(seq uint64, counts totals, elapsed float64) {
	for o := range counts {
		t.rates[o] = perSecond(counts[o]-t.before[o], elapsed)
	}
	for i, o := range plotted {
		t.past[i][seq%points] = t.rates[o]
	}
	t.before = counts
}

// perSecond returns a rate to a tenth.
func perSecond(n uint64, seconds float64) float32 {
	if seconds <= 0 {
		return 0
	}
	return float32(math.Round(float64(n)/seconds*10) / 10)
}

// now returns the number of the last tick and the rates then.
func (h *history) now() (seq uint64, rates map[string][outcomes]float32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rates = make(map[string][outcomes]float32, len(h.rules))
	for name, t := range h.rules {
		rates[name] = t.rates
	}
	return h.seq, rates
}

// A historyView is a history as it is sent to the page: for each rule and outcome the rates, the
// oldest first.
type historyView struct {
	Seq    uint64                          `json:"seq"`
	Points int                             `json:"points"` // that there can be
	Rules  map[string]map[string][]float32 `json:"rules"`
}

func (h *history) view() historyView {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := historyView{Seq: h.seq, Points: points, Rules: make(map[string]map[string][]float32, len(h.rules))}
	for name, t := range h.rules {
		lines := make(map[string][]float32, len(plotted))
		for i, o := range plotted {
			lines[o.String()] = t.line(i, h.seq)
		}
		v.Rules[name] = lines
	}
	return v
}

func (t *track) line(i int, seq uint64) []float32 {
	n := min(seq, points)
	line := make([]float32, 0, n)
	for at := seq - n + 1; at <= seq; at++ {
		line = append(line, t.past[i][at%points])
	}
	return line
}
