package replay

import (
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/engine"
)

// Comparison has the results of several policies for the requests of the same log.
type Comparison struct {
	Log
	Limit    uint64        // the limit of all policies
	Window   time.Duration // the window of all policies
	Outcomes []Compared    // in the order of the policies
	LeftOut  []LeftOut     // policies for which the engine cannot make a limiter
}

// LeftOut is a policy that was not compared, with the reason. For example, a sliding log with a large limit needs too
// much memory for each key.
type LeftOut struct {
	Policy engine.Policy
	Reason error
}

// Compared is the result of one policy.
type Compared struct {
	Outcome
	// WorstExcess is the largest number of requests by which a key exceeded the limit within a window, wherever the
	// window begins. It is exact, because it is computed from the times of the admitted requests.
	WorstExcess uint64
	// BytesPerKey is the size of the engine's table, divided by the number of keys for which the table was made.
	BytesPerKey float64
}

// Compare is [Run] with several policies at once. Each policy has its own limiter, and the log is read only once, so it
// can be a pipe. To compute the excess over the limit, Compare keeps the times of each key's requests that were
// admitted within the last window. A policy without a possible limiter is left out, with the reason. If no policy is
// left, Compare returns the first error.
func Compare(c *limit.Comparison, newLimiter NewLimiter, log *accesslog.Log) (*Comparison, error) {
	return repeat(log, func(a attempt) (*Comparison, error) {
		r, err := newRun(byAddress(), a, c.Window)
		if err != nil {
			return nil, err
		}
		defer r.close()
		var leftOut []LeftOut
		for _, p := range c.Policies {
			if err := r.add(p, newLimiter); err != nil {
				leftOut = append(leftOut, LeftOut{p, err})
			}
		}
		if len(r.trials) == 0 {
			return nil, leftOut[0].Reason
		}
		if err := r.read(log, r.take, r.takeAsLogged); err != nil {
			return nil, err
		}
		result := r.compare(c)
		result.LeftOut = leftOut
		return result, nil
	})
}

// compare returns the comparison, including the numbers that are known only at the end.
func (r *run) compare(settings *limit.Comparison) *Comparison {
	c := &Comparison{Log: r.log, Limit: settings.Limit, Window: settings.Window}
	for i := range r.trials {
		worst := settings.Limit
		for _, client := range r.clients.byName {
			worst = max(worst, client.charges[i].admitted.fullest)
		}
		c.Outcomes = append(c.Outcomes, Compared{
			Outcome:     r.outcome(i),
			WorstExcess: worst - settings.Limit,
			BytesPerKey: float64(r.trials[i].limiter.Stats().Bytes) / float64(min(r.room, settings.MaxKeys)),
		})
	}
	return c
}

// String returns the policy and the reason. If the reason begins with the policy, String returns only the reason.
func (l LeftOut) String() string {
	reason := strings.TrimPrefix(l.Reason.Error(), "engine: ")
	return l.Policy.String() + ": " + strings.TrimPrefix(reason, l.Policy.String()+": ")
}

// EvictionNote returns the note of the first policy whose figures are approximate, or "" if there is none.
func (c *Comparison) EvictionNote() string {
	for _, o := range c.Outcomes {
		if note := o.EvictionNote(); note != "" {
			return note
		}
	}
	return ""
}
