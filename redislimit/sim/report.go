package sim

import (
	"time"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/breaker"
)

// A Report contains the results of a [Scenario].
type Report struct {
	Nodes   int      `json:"nodes"`
	Keys    int      `json:"keys"`
	Rate    string   `json:"rate"`
	Burst   uint64   `json:"burst"`
	Load    float64  `json:"load"` // load on the first key, as a multiple of the rate
	Seconds float64  `json:"seconds"`
	Seed    uint64   `json:"seed"`
	Away    *Span    `json:"away,omitempty"` // when the store could not be reached, in nanoseconds
	Costs   []uint64 `json:"costs"`          // costs of requests in tokens; each occurs equally often
	Offered uint64   `json:"offered"`        // requests for all keys
	Tokens  uint64   `json:"offered_tokens"` // tokens that the requests ask for; all numbers below are in tokens
	Asked   uint64   `json:"asked"`          // number of keys that had any request
	Ideal   uint64   `json:"ideal"`          // what a single limiter for all nodes would have admitted
	Limit   float64  `json:"limit"`          // rate*T, for each key
	Allowed float64  `json:"allowed"`        // burst + rate*T, for each key
	Results []Result `json:"results"`        // in the order of the strategies
}

// A Result contains the results of one strategy.
type Result struct {
	Strategy string `json:"strategy"`
	Title    string `json:"title"`          // its name in reports for people
	Note     string `json:"note,omitempty"` // a remark for the reader
	Admitted uint64 `json:"admitted"`       // of all keys together
	Excess   uint64 `json:"excess"`         // tokens admitted beyond the ideal, summed key by key
	// Refused is the number of tokens that the ideal limit admitted and this strategy did not, summed key by key.
	Refused      uint64  `json:"false_refusals"`
	RefusedShare float64 `json:"false_refusal_share"` // Refused as a part of the offered tokens, 0 to 1

	// The fields up to FirstAsked are about the first key, which has the most requests.
	FirstAdmitted  uint64  `json:"first_admitted"`
	FirstOfLimit   float64 `json:"first_of_limit"`         // admitted/(rate*T)
	FirstOfAllowed float64 `json:"first_of_allowed"`       // admitted/(burst + rate*T)
	FirstAsked     float64 `json:"first_asked_per_second"` // questions to the store about this key, per second

	Calls     uint64  `json:"calls"`                    // made by all nodes, each with up to 64 questions
	CallsASec float64 `json:"calls_per_second"`         // per second
	Questions uint64  `json:"questions"`                // questions that reached the store in these calls
	AskedAKey float64 `json:"asked_per_key_and_second"` // questions per second for each key that had requests

	// Held is O, the most tokens of one key that all nodes held together at any time.
	Held uint64 `json:"held"`
	// Bound is burst + rate*T + O + N*D over the run. O is Held. D is 0 for strict nodes, and otherwise the overdraft
	// of leases. Settling later has no overdraft, but is compared with the bound of leases. With shares, each loss of
	// the store adds one burst. It also adds the tokens that come back until all nodes have noticed that the store is
	// back.
	Bound float64 `json:"bound"`
	// Worst is the largest excess of any key over any interval. The excess is the admitted tokens, minus rate*T and
	// minus the tokens in hand when the interval began. For windows, intervals begin at the start of the run and end
	// with a window.
	//
	// WorstBound is burst + N*D. With shares, a loss adds the tokens of all shares: a burst in total, or one token for
	// each node. It also adds, up to a burst, the tokens that come back until all nodes have noticed that the store is
	// back. Holds is true if Worst is within WorstBound and the admitted tokens of each key are within Bound.
	Worst      float64 `json:"worst"`
	WorstBound float64 `json:"worst_bound"`
	Holds      bool    `json:"holds"`
}

func newReport(s *Scenario, ideal *central) *Report {
	limit := s.perMicrosecond() * float64(s.Time/time.Microsecond)
	r := &Report{
		Nodes: s.Nodes, Keys: s.Keys, Rate: s.Rate.String(), Burst: s.Burst, Load: s.Load,
		Seconds: s.Time.Seconds(), Seed: s.Seed,
		Costs: s.costs(), Offered: ideal.requests,
		Limit: limit, Allowed: limit + float64(s.Burst),
	}
	if s.Away != (Span{}) {
		r.Away = &s.Away
	}
	for key, offered := range ideal.offered {
		r.Tokens += offered
		r.Ideal += ideal.keys[key].admitted
		if offered > 0 {
			r.Asked++
		}
	}
	return r
}

func (s *Scenario) cutOff() int {
	if s.CutOff == 0 {
		return s.Nodes
	}
	return s.CutOff
}

// callTime is shorter than the timeout, so that a caller still gets the reason for a failure.
func (s *Scenario) callTime() time.Duration { return s.Timeout - s.Timeout/10 }

func (s *Scenario) partitions() int { return max(s.Partitions, 1) }

func (s *Scenario) awayPartitions() int {
	if s.AwayPartitions == 0 {
		return s.partitions()
	}
	return s.AwayPartitions
}

// afterLoss returns the tokens that all losses of the store add to the bound: see docs/distributed.md. The argument
// shareTokens is how many tokens the shares of all nodes contain.
func (s *Scenario) afterLoss(shareTokens float64) float64 {
	switch {
	case s.OnLoss != redislimit.FailShare || s.Away == Span{} && s.Loss == 0 && s.RTT+s.Jitter <= s.callTime():
		return 0
	case s.Away == Span{}:
		return shareTokens // only single answers are lost or late
	}
	nodes, rate := float64(s.cutOff()), s.perMicrosecond()
	awayTime, noticeTime := s.Away.To-s.Away.From, breaker.ProbeEvery+s.RTT+s.Jitter
	if s.cutOff() == s.Nodes {
		return shareTokens + min(rate*float64((awayTime+noticeTime)/time.Microsecond), float64(s.Burst))
	}
	returned := min(rate*float64(noticeTime/time.Microsecond), float64(s.Burst))
	return shareTokens + returned + rate*float64(awayTime/time.Microsecond)*nodes/float64(s.Nodes)
}

const rounding = 1e-6

func (r *Report) add(strategy Strategy, w *world, ideal *central, note string) {
	s, first := w.scenario, &w.keys[0]
	overdraft := float64(s.Overdraft) * float64(s.Nodes)
	if strategy.kind == kindStrict || note != "" { // strict, or strict instead of a lease
		overdraft = 0
	}
	result := Result{
		Strategy: strategy.String(), Title: strategy.Title(), Note: note,
		FirstAdmitted:  first.admitted,
		FirstOfLimit:   float64(first.admitted) / r.Limit,
		FirstOfAllowed: float64(first.admitted) / r.Allowed,
		FirstAsked:     float64(first.questions) / r.Seconds,
		Calls:          w.calls,
		CallsASec:      float64(w.calls) / r.Seconds,
		Questions:      w.questions,
		AskedAKey:      float64(w.questions) / float64(max(r.Asked, 1)) / r.Seconds,
		Held:           uint64(w.maxHeld),
		WorstBound:     float64(s.Burst) + overdraft + s.afterLoss(float64(max(s.Burst, uint64(s.Nodes)))),
		Holds:          true,
	}
	result.Bound = r.Limit + float64(w.maxHeld) + float64(s.Burst) + overdraft + s.afterLoss(float64(s.Burst))
	for key := range w.keys {
		a, want := &w.keys[key], ideal.keys[key].admitted
		result.Admitted += a.admitted
		result.Excess += max(a.admitted, want) - want
		result.Refused += want - min(a.admitted, want)
		result.Worst = max(result.Worst, a.excess)
		result.Holds = result.Holds && float64(a.admitted) <= result.Bound+rounding
	}
	result.RefusedShare = float64(result.Refused) / float64(max(r.Tokens, 1))
	result.Holds = result.Holds && result.Worst <= result.WorstBound+rounding
	r.Results = append(r.Results, result)
}
