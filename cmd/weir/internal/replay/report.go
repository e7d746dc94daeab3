package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// maxReasons is how many skipped lines are remembered with their reason: enough
// to see what is wrong, without holding a whole wrong file.
const maxReasons = 5

// Report is what the limit would have done to the requests of a log.
type Report struct {
	Requests, Allowed, Refused uint64

	Skipped uint64   // lines that are not requests
	Reasons []Reason // why, for the first few of them

	Keys        uint64 // different keys that made a request
	RefusedKeys []Key  // those refused at least once: most refused first, then by name

	First, Last time.Time     // earliest and latest stamp
	Late        uint64        // requests stamped earlier than one before them
	MostLate    time.Duration // how much earlier, at most

	// Evictions and ForgivenTokens count the buckets that the limiter had to
	// forget for want of room, and what was then missing in them. If not zero the
	// figures above are approximate: too few are refused.
	Evictions, ForgivenTokens uint64
}

// Reason is why a line was skipped.
type Reason struct {
	Line int
	Err  error
}

// String returns "line 3: what is wrong with it".
func (r Reason) String() string { return fmt.Sprintf("line %d: %v", r.Line, r.Err) }

// Key is what became of the requests of one key.
type Key struct {
	Name              string
	Requests, Refused uint64
}

// EvictionNote says what evictions mean for the figures and what to do about
// them; it is empty if there were none and the figures are exact.
func (r *Report) EvictionNote() string {
	if r.Evictions == 0 {
		return ""
	}
	return fmt.Sprintf("The figures are approximate, with too few refusals: the limiter had no room for all keys and\n"+
		"forgot buckets that were not full (%d, short of %d tokens). Replay again with a larger --max-keys.",
		r.Evictions, r.ForgivenTokens)
}

func (r *Report) skip(line int, err error) {
	r.Skipped++
	if len(r.Reasons) < maxReasons {
		r.Reasons = append(r.Reasons, Reason{line, err})
	}
}

func (r *Report) count(c *client, allowed bool) {
	r.Requests++
	c.requests++
	if allowed {
		r.Allowed++
		return
	}
	r.Refused++
	c.refused++
}

func (r *Report) stamp(at time.Time, behind time.Duration) {
	if r.First.IsZero() || at.Before(r.First) {
		r.First = at
	}
	if at.After(r.Last) {
		r.Last = at
	}
	if behind > 0 {
		r.Late++
		r.MostLate = max(r.MostLate, behind)
	}
}

// finish fills in what is known only at the end.
func (r *Report) finish(cs *clients, stats engine.Stats) {
	r.Keys = uint64(len(cs.byName))
	r.Evictions, r.ForgivenTokens = stats.Evictions, stats.Forgiven
	for _, c := range cs.byName {
		if c.refused > 0 {
			r.RefusedKeys = append(r.RefusedKeys, Key{c.name, c.requests, c.refused})
		}
	}
	slices.SortFunc(r.RefusedKeys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name))
	})
}
