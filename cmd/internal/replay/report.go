package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/engine"
)

// maxReasons is how many skipped lines are remembered with their reason: enough to see what is wrong, without keeping a
// whole wrong file.
const maxReasons = 5

// Report describes a log, and the results of a limit for its requests.
type Report struct {
	Log
	Outcome
}

// Log describes a log, whatever the limit.
type Log struct {
	Format   string // of its lines; several if its files differ
	Requests uint64
	Keys     uint64 // different keys that made a request

	Skipped uint64                 // lines that are not requests
	Reasons []*accesslog.LineError // why, for the first few of them

	First, Last time.Time     // earliest and latest stamp
	Late        uint64        // requests stamped earlier than one before them in their file
	MostLate    time.Duration // how much earlier, at most
	Astray      uint64        // lines skipped because their date is far from those around them

	// ProxyNote says that a few clients sent nearly all requests and may be proxies; "" otherwise.
	ProxyNote string
}

// Outcome has the results of a limit for the requests of a log.
type Outcome struct {
	Policy           engine.Policy
	Allowed, Refused uint64
	RefusedKeys      []Key // keys refused at least once: most refused first, then by name
	// AsLogged is how many requests are refused if they are decided in the order of the log, each at the latest time
	// before it. It equals Refused if no request is late.
	AsLogged uint64

	// Evictions and ForgivenTokens count the buckets that the limiter evicted because there was no room, and the tokens
	// that these buckets still owed. If Evictions is not zero, the figures above are approximate: too few requests are
	// refused.
	Evictions, ForgivenTokens uint64
}

// Key has the results for the requests of one key.
type Key struct {
	Name              string
	Requests, Refused uint64
}

// EvictionNote explains the effect of evictions on the figures, and what to do about them. It is empty if there were
// none, and the figures are exact.
func (o *Outcome) EvictionNote() string {
	if o.Evictions == 0 {
		return ""
	}
	return fmt.Sprintf("The figures are approximate, with too few refusals: the limiter did not have room for all keys and\n"+
		"forgot some that were not idle (%d, short of %d tokens). Replay again with a larger --max-keys.",
		o.Evictions, o.ForgivenTokens)
}

func (l *Log) skip(bad *accesslog.LineError) {
	l.Skipped++
	if errors.Is(bad, accesslog.ErrAstray) {
		l.Astray++
	}
	if len(l.Reasons) < maxReasons {
		l.Reasons = append(l.Reasons, bad)
	}
}

// stamp counts a request.
func (l *Log) stamp(e *accesslog.Entry) {
	at := e.Time
	l.Requests++
	if l.First.IsZero() || at.Before(l.First) {
		l.First = at
	}
	if at.After(l.Last) {
		l.Last = at
	}
	if e.Late > 0 {
		l.Late++
		l.MostLate = max(l.MostLate, e.Late)
	}
}

// outcome returns the results of a trial, including the numbers that are only known at the end.
func (r *run) outcome(trial int) Outcome {
	o := r.trials[trial].outcome
	o.AsLogged = o.Refused
	if r.asLogged {
		o.AsLogged = r.logged[trial].outcome.Refused
	}
	stats := r.trials[trial].limiter.Stats()
	o.Evictions, o.ForgivenTokens = stats.Evictions, stats.Forgiven
	for _, c := range r.clients.byName {
		if refused := c.charges[trial].refused; refused > 0 {
			o.RefusedKeys = append(o.RefusedKeys, Key{c.name, c.requests, refused})
		}
	}
	sortKeys(o.RefusedKeys)
	return o
}
