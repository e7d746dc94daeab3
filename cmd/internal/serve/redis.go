package serve

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/resp"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/limits/live"
)

// redisSettings returns the settings of the current generation, or nil if there are none. The caller must call the
// method Leave of the settings, which leaves the generation.
func (s *Server) redisSettings() *resp.Settings {
	g := s.enter()
	if g == nil {
		return nil
	}
	if g.redis == nil {
		g.leave()
	}
	return g.redis
}

// openRedis puts the tables and settings for Redis clients into g. It uses existing tables where possible. The result
// oldLimits has the previous limits of every existing table that was changed.
func (s *Server) openRedis(g, before *generation, changes *rulefile.Changes) (oldLimits []ruleLimits, err error) {
	if g.file.Redis == nil {
		return nil, nil
	}
	if err := s.openRedisTable(g, before, changes); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	for i := range g.file.Redis.Limits {
		l := &g.file.Redis.Limits[i]
		rule, change := l.Rule(g.file.Redis), rulefile.RuleChange{Limit: rulefile.Add}
		oldRule := before.lastCounting[rule.Name]
		switch {
		case oldRule != nil: // a token bucket now; its table stays, so that what keys have used still counts
			change = rulefile.Compare(oldRule, rule)
		case !l.HasTable():
			continue
		}
		changedLimits, err := s.limiter(g, before, rule, &change)
		if oldLimits = append(oldLimits, changedLimits...); err != nil {
			return oldLimits, fmt.Errorf("redis: limits: %w", err)
		}
		table := g.limiters[rule.Name]
		if bucket, ok := before.file.Redis.Limit(l.Name); ok && oldRule == nil {
			if err := s.handOverBucket(before, bucket.Name, table); err != nil {
				return oldLimits, fmt.Errorf("redis: limits: %w", err)
			}
		}
		g.redis.Tables[l.Name] = resp.Table{Limiter: table.Limiter, Formers: table.Formers()}
	}
	return oldLimits, nil
}

// handOverBucket is called when a limit changes from a token bucket to another algorithm. Keys may owe tokens in the
// common table. The new table of the limit takes over these debts. The common table keeps them while the previous
// generation still decides by the token bucket, and releases them when that generation ends.
func (s *Server) handOverBucket(before *generation, name string, table *live.Limiter) error {
	bucket := before.buckets[name]
	if bucket == nil {
		now := s.config.Clock
		if now == nil {
			now = time.Now
		}
		// A bucket fills within Redis.Longest and owes at most ten times its limit.
		bucket = before.redisTable.Share(11*before.file.Redis.Longest, now, math.MaxUint64)
		before.buckets[name] = bucket
	}
	return bucket.HandOver(table)
}

// openRedisTable does for the common table what openRedis does for all tables.
func (s *Server) openRedisTable(g, before *generation, changes *rulefile.Changes) error {
	redis := g.file.Redis
	passwords, err := redis.Passwords()
	if err != nil {
		return err
	}
	switch changes.RedisTable {
	case rulefile.Keep, rulefile.Adjust:
		g.redisTable = before.redisTable.Acquire()
	case rulefile.Carry, rulefile.Add, rulefile.Replace:
		limiter, err := s.newRedisLimiter(redis)
		if err != nil {
			return err
		}
		g.redisTable = live.New(limiter)
		if changes.RedisTable == rulefile.Carry {
			next, err := before.redisTable.Replace(limiter)
			if err != nil {
				return err
			}
			g.redisTable = next
		}
	}
	if s.redis.holds == nil { // the holds outlive all generations, because otherwise a used id would be valid again
		if s.redis.holds, err = resp.NewHolds(redis.MaxKeys, s.config.Clock, s.config.LimiterOptions...); err != nil {
			return err
		}
	}
	places, err := s.redisPlaces(redis)
	if err != nil {
		return err
	}
	g.redis = &resp.Settings{
		Limiter: g.redisTable.Limiter, Formers: g.redisTable.Formers(), Longest: redis.Longest, Limits: redis.Policies(),
		Tables: map[string]resp.Table{}, Passwords: passwords,
		IdleTimeout: redis.IdleTimeout, Negative: redis.Negative, Holds: s.redis.holds, Places: places, Leave: g.leave,
	}
	return nil
}

// redisPlaces returns the Places of Redis clients, or nil if the file does not want them. They are made once and used
// for every later file, because requests in flight cannot be moved.
func (s *Server) redisPlaces(redis *rulefile.Redis) (_ *resp.Places, err error) {
	switch {
	case redis.InFlight == 0:
		return nil, nil
	case s.redis.places == nil:
		s.redis.places, err = resp.NewPlaces(redis.InFlight, redis.MaxKeys, redis.Overflow, s.config.Clock, s.config.LimiterOptions...)
	case s.redis.places.Lifetime != redis.InFlight:
		err = fmt.Errorf("in_flight was %v and is %v: requests in flight would no longer be counted: start weir "+
			"again", s.redis.places.Lifetime, redis.InFlight)
	}
	return s.redis.places, err
}

// redisCollector reads the statistics of Redis clients when Prometheus scrapes. If there is no listener for Redis
// clients, it reports nothing.
type redisCollector struct {
	server            *Server
	mu                sync.Mutex
	evictions, noRoom monotonicSum
}

// A monotonicSum is a sum of counters that never falls. If a counter is removed, its count stays in the sum.
type monotonicSum struct{ last, removed uint64 }

// total returns the sum of all counters. The parameter n is the sum of the counters that still exist.
func (r *monotonicSum) total(n uint64) uint64 {
	if n < r.last {
		r.removed += r.last - n
	}
	r.last = n
	return r.removed + n
}

var (
	redisCommands = prometheus.NewDesc("weir_redis_commands_total",
		"Commands of Redis clients, including those that were answered by an error.", []string{"command"}, nil)
	redisDecisions = prometheus.NewDesc("weir_redis_decisions_total",
		"Takes of Redis clients, including those of 0 tokens, by decision.", []string{"outcome"}, nil)
	redisErrors = prometheus.NewDesc("weir_redis_errors_total",
		"Commands of clients of Redis that were answered by an error.", []string{"reason"}, nil)
	redisSlow = prometheus.NewDesc("weir_redis_slow_clients_total",
		"Connections of clients of Redis that ended because an answer could not be written.", nil, nil)
	redisOpen     = prometheus.NewDesc("weir_redis_connections", "Open connections of clients of Redis.", nil, nil)
	redisMax      = prometheus.NewDesc("weir_redis_connections_max", "The bound on these connections; 0 for none.", nil, nil)
	redisRejected = prometheus.NewDesc("weir_redis_connections_rejected_total",
		"Connections of clients of Redis that were refused because there were too many.", nil, nil)
	redisKeys = prometheus.NewDesc("weir_redis_keys",
		"Keys of clients of Redis that had used some of their limit at the last sweep.", nil, nil)
	redisSlots = prometheus.NewDesc("weir_redis_table_slots",
		"Slots of the tables, which are sized to be six tenths full.", nil, nil)
	redisBytes     = prometheus.NewDesc("weir_redis_table_bytes", "Memory of the tables.", nil, nil)
	redisEvictions = prometheus.NewDesc("weir_redis_evictions_total",
		"Keys evicted because there was no room although they had used some of their limit.", nil, nil)
	redisNoRoom = prometheus.NewDesc("weir_redis_no_room_refusals_total",
		"Takes refused because a table had no room for their key.", nil, nil)
)

func (c *redisCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		redisCommands, redisDecisions, redisErrors, redisSlow, redisOpen, redisMax, redisRejected, redisKeys, redisSlots,
		redisBytes, redisEvictions, redisNoRoom,
	} {
		out <- d
	}
}

func (c *redisCollector) Collect(out chan<- prometheus.Metric) {
	settings := c.server.redisSettings()
	if settings == nil {
		return
	}
	defer settings.Leave()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n)
	}
	counts := c.server.redis.counters.Count()
	for name, count := range counts.Commands {
		counter(redisCommands, count, name)
	}
	counter(redisDecisions, counts.Allowed, "allowed")
	counter(redisDecisions, counts.Limited, "limited")
	counter(redisErrors, counts.Unknown, "unknown_command")
	counter(redisErrors, counts.Broken, "protocol")
	counter(redisErrors, counts.WrongPasswords, "wrong_password")
	counter(redisErrors, counts.Errors-counts.Unknown-counts.Broken-counts.WrongPasswords, "other")
	counter(redisSlow, counts.Slow)
	limit := c.server.connections[redisClients]
	gauge(redisOpen, float64(limit.Open()))
	gauge(redisMax, float64(limit.Max()))
	counter(redisRejected, uint64(limit.Rejected()))
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := settings.Stats()
	gauge(redisKeys, float64(stats.Keys))
	gauge(redisSlots, float64(stats.Slots))
	gauge(redisBytes, float64(stats.Bytes))
	counter(redisEvictions, c.evictions.total(stats.Evictions))
	counter(redisNoRoom, c.noRoom.total(stats.NoRoom))
}
