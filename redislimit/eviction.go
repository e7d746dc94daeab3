package redislimit

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	evictionEvery = time.Second
	evictionQuiet = compareEvery // the store is used again after this time without dropped keys
	evictionTime  = time.Second
)

var errEvicts = fmt.Errorf("redislimit: %w: it drops keys, because its memory is full", ErrStore)

// An eviction contains what a client knows about how its store drops keys when its memory is full. A store that drops
// keys counts as lost, because a dropped key's debt is forgotten. Limiters with [FailOpen] still use it.
type eviction struct {
	next   atomic.Int64 // when to check again
	isBusy atomic.Bool  // a goroutine checks the store, and may write the fields below

	policy       atomic.Pointer[string]
	since        atomic.Int64 // since when the store counts as lost; 0 if it does not
	last         int64        // when dropped keys were last found
	nextWarn     int64
	isMuteLogged bool             // it was logged that a server does not report how it evicts
	dropped      map[string]int64 // by server: keys ever dropped
}

func (e *eviction) isLost() bool { return e != nil && e.since.Load() != 0 }

// watchEviction starts a check of the store's evictions if one is due.
func (c *Client) watchEviction(now int64) {
	e := &c.eviction
	if c.link.Load().redis == nil || now < e.next.Load() || !e.isBusy.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer e.isBusy.Store(false)
		c.checkEviction(now)
		every := int64(compareEvery)
		if e.policy.Load() != nil || e.isLost() {
			every = int64(evictionEvery)
		}
		e.next.Store(now + every)
	}()
}

func (c *Client) checkEviction(now int64) {
	e := &c.eviction
	ctx, cancel := context.WithTimeout(context.Background(), evictionTime)
	defer cancel()
	var policy *string
	allAnswered, warned, dropped := true, false, int64(0)
	for address, server := range c.link.Load().redis.Nodes() {
		found, err := evictionOf(ctx, server)
		if err != nil {
			allAnswered = false
			continue
		}
		if found.mayDrop() {
			policy = &found.policy
		}
		if found.mayDrop() && found.policy != "allkeys-lru" && now >= e.nextWarn {
			warned = true
			c.logAttrs(slog.LevelWarn, "the store drops keys when its memory is full, and a dropped key has its whole "+
				"limit again: want maxmemory-policy noeviction or allkeys-lru", slog.String("maxmemory-policy", found.policy), slog.String("server", address))
		}
		if found.dropped >= 0 {
			dropped += e.newlyDropped(address, found.dropped)
		} else if !e.isMuteLogged {
			e.isMuteLogged = true
			c.logAttrs(slog.LevelWarn, "the store does not report how many keys it evicts, so nodes cannot fall back to "+
				"shares when it does: allow its user INFO", slog.String("server", address))
		}
	}
	if policy != nil || allAnswered {
		e.policy.Store(policy)
	}
	if warned {
		e.nextWarn = now + int64(compareEvery)
	}
	c.noteEviction(now, dropped, allAnswered)
}

// newlyDropped returns how many keys the server at an address has dropped since the previous call for this address. The
// first call returns 0.
func (e *eviction) newlyDropped(address string, dropped int64) int64 {
	if e.dropped == nil {
		e.dropped = map[string]int64{}
	}
	before, ok := e.dropped[address]
	e.dropped[address] = dropped
	switch {
	case !ok:
		return 0
	case dropped < before: // a restart, or a reset of the counters
		return dropped
	}
	return dropped - before
}

func (c *Client) noteEviction(now, dropped int64, allAnswered bool) {
	e := &c.eviction
	since := e.since.Load()
	switch {
	case dropped > 0:
		e.last = now
		c.condition.lastFailure.Store(&failure{errEvicts, time.Now()})
		if since == 0 {
			e.since.Store(max(now, 1))
			c.condition.outage.begin("eviction", time.Now)
			c.logAttrs(slog.LevelError, "the store drops keys: it is lost until it drops none for a while",
				slog.Int64("dropped", dropped), slog.Duration("while", evictionQuiet))
		}
	case since != 0 && allAnswered && now-e.last >= int64(evictionQuiet):
		e.since.Store(0)
		c.noteReturn()
	}
}

type evictionReport struct {
	policy  string // "" if its memory has no limit, or if it is not reported
	dropped int64  // since it started; -1 if not reported
}

func (e evictionReport) mayDrop() bool { return e.policy != "" && e.policy != "noeviction" }

// evictionOf returns how a server evicts keys, by INFO or by CONFIG. CONFIG does not say how many keys were dropped.
func evictionOf(ctx context.Context, server rueidis.Client) (evictionReport, error) {
	text, err := server.Do(ctx, server.B().Arbitrary("INFO").Args("memory", "stats").Build()).ToString()
	if err == nil {
		return readEviction(text), nil
	}
	if _, isReply := rueidis.IsRedisErr(err); !isReply {
		return evictionReport{}, err
	}
	settings, err := server.Do(ctx, server.B().ConfigGet().Parameter("maxmemory", "maxmemory-policy").Build()).AsStrMap()
	if _, isReply := rueidis.IsRedisErr(err); err != nil && !isReply {
		return evictionReport{}, err
	}
	return newEvictionReport(settings["maxmemory"], settings["maxmemory-policy"], -1), nil
}

func readEviction(text string) evictionReport {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	dropped, err := strconv.ParseInt(fields["evicted_keys"], 10, 64)
	if err != nil {
		dropped = -1
	}
	return newEvictionReport(fields["maxmemory"], fields["maxmemory_policy"], dropped)
}

func newEvictionReport(memory, policy string, dropped int64) evictionReport {
	if memory == "0" {
		policy = ""
	}
	return evictionReport{policy, dropped}
}
