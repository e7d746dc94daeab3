package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/engine"
)

// maxReasons is how many skipped lines are remembered with their reason. A few reasons show what is wrong, even if
// every line of a file is skipped.
const maxReasons = 5

// Report describes a log, and the results of a limit for its requests.
type Report struct {
	Log
	Outcome
}

// Log describes a log, independently of any limit.
type Log struct {
	Format   string // format of the lines; several formats if the files differ
	Requests uint64
	Keys     uint64 // different keys with a request

	Skipped uint64                 // lines that are not requests
	Reasons []*accesslog.LineError // why the first few of them were skipped

	First, Last time.Time     // earliest and latest time
	Late        uint64        // requests with an earlier time than a request before them in their file
	MostLate    time.Duration // by how much a request is late, at most
	Astray      uint64        // skipped lines whose date is far from the dates around them

	// ProxyNote says that a few clients sent nearly all requests and may be proxies. It is "" if this is not so.
	ProxyNote string
}

// Outcome has the results of a limit for the requests of a log.
type Outcome struct {
	Policy           engine.Policy
	Allowed, Refused uint64
	RefusedKeys      []Key // keys that were refused at least once: the key with the most refusals first, then by name
	// AsLogged is how many requests are refused if they are decided in the order of the log. Each late request then
	// counts at the latest time in the lines before it. If no request is late, AsLogged equals Refused.
	AsLogged uint64

	// Evictions is how many buckets were evicted for lack of room. ForgivenTokens is how many tokens these buckets
	// still counted. If Evictions is not zero, the figures above are approximate: too few requests are refused.
	Evictions, ForgivenTokens uint64
}

// Key has the results for the requests of one key.
type Key struct {
	Name              string
	Requests, Refused uint64
}

// EvictionNote says what evictions change in the figures, and what to do about it. Without evictions, the figures are
// exact and the note is empty.
func (o *Outcome) EvictionNote() string {
	if o.Evictions == 0 {
		return ""
	}
	return fmt.Sprintf("The figures are approximate, with too few refusals: the limiter did not have room for all keys and\n"+
		"forgot some that were not idle (%d, short of %d tokens). Replay again with a larger --max-keys.",
		o.Evictions, o.ForgivenTokens)
}

func (l *Log) skip(lineErr *accesslog.LineError) {
	l.Skipped++
	if errors.Is(lineErr, accesslog.ErrAstray) {
		l.Astray++
	}
	if len(l.Reasons) < maxReasons {
		l.Reasons = append(l.Reasons, lineErr)
	}
}

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

// outcome returns the results of a trial, including the numbers that are known only at the end.
func (r *run) outcome(trial int) Outcome {
	o := r.trials[trial].outcome
	o.AsLogged = o.Refused
	if r.asLogged {
		o.AsLogged = r.logTrials[trial].outcome.Refused
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
