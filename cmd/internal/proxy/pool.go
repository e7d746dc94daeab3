package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A pool has the servers of an upstream. A request goes to the server with the fewest requests in progress. Servers
// that are down get no requests: those with failed health checks (healthcheck.go) or a failed connection (member.go).
// If all servers are down, all are tried. The health checks may be wrong, and an error without a try would be no better
// than a bad answer.
//
// A pool exists as long as a configuration has an upstream with the same servers and settings. So a reload forgets
// nothing about the servers.
type pool struct {
	members   []*member
	upstreams *Upstreams
	turn      atomic.Uint32 // selects the first server to compare, so that equal servers take turns
	end       context.CancelFunc
	checks    sync.WaitGroup
}

// A poolKey identifies a pool. All upstreams with an equal poolKey share the pool.
type poolKey struct {
	transport transportKey // without the server
	targets   string
	health    Health
}

func poolOf(u *Upstream) poolKey {
	names := make([]string, len(u.Targets))
	for i, t := range u.Targets {
		names[i] = t.String()
	}
	key := poolKey{transport: transportOf(u, Target{}), targets: strings.Join(names, "\n")}
	if u.Health != nil {
		key.health = *u.Health
	}
	return key
}

func (u *Upstreams) newPool(upstream *Upstream, members []*member) *pool {
	ctx, end := context.WithCancel(context.Background())
	p := &pool{members: members, upstreams: u, end: end}
	for _, m := range members {
		m.pool, m.log = p, u.config.Log.With("upstream", m.Target.String())
		if upstream.Health != nil {
			p.checks.Go(func() { m.watch(ctx, upstream.Health) })
		}
	}
	return p
}

func (p *pool) close() {
	p.end()
	p.checks.Wait()
}

// acquire chooses a server, and counts the request until the server is released. The parameter tried has the servers
// that this request could not reach. acquire returns nil if it has tried all servers.
func (p *pool) acquire(tried []*member) *member {
	if len(p.members) == 1 && len(tried) == 0 {
		return p.members[0].acquire()
	}
	now := p.upstreams.config.Now()
	for {
		m := p.leastBusy(tried, now)
		if m == nil || m.mayTry(now) {
			return m.acquire()
		}
	}
}

// leastBusy returns the eligible server with the fewest requests in progress ([member.isEligible]). If no server
// is eligible, it chooses among all servers. It leaves out the servers in tried, and returns nil if none is left.
func (p *pool) leastBusy(tried []*member, now time.Time) (best *member) {
	leastInFlight, bestEligible := int64(0), false
	first := int(p.turn.Add(1) % uint32(len(p.members)))
	for i := range p.members {
		m := p.members[(first+i)%len(p.members)]
		if slices.Contains(tried, m) {
			continue
		}
		n, eligible := m.inFlight.Load(), m.isEligible(now)
		if best == nil || eligible && !bestEligible || eligible == bestEligible && n < leastInFlight {
			best, leastInFlight, bestEligible = m, n, eligible
		}
	}
	return best
}
