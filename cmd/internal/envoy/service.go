package envoy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// A Service answers ShouldRateLimit. Make one with [New]. It is safe for concurrent use.
type Service struct {
	rlsv3.UnimplementedRateLimitServiceServer

	options Options
	tables  *tables
	memo    *memo // nil if counters are in memory

	reservations *reservations

	stats       statistics
	configMutex sync.Mutex // locked during SetConfig
	active      atomic.Pointer[activeConfig]
}

// Config returns the active configuration, or nil before the first one.
func (s *Service) Config() *config.Config {
	if current := s.active.Load(); current != nil {
		return current.config
	}
	return nil
}

// New returns a service without rules. Until SetConfig is called, it answers "no rate limit configuration loaded". An
// error names the option, its value and the range.
func New(options Options) (*Service, error) {
	options, err := options.check()
	if err != nil {
		return nil, err
	}
	s := &Service{options: options, tables: newTables(options)}
	if s.tables.inStore {
		s.memo = newMemo(options.MemoBytes)
	}
	s.stats.maxNames = int64(options.MaxStats)
	// This finds an impossible MaxKeys now. Otherwise it would be found only when the first rule needs a table.
	if _, err := s.tables.get(config.Limit{Algorithm: engine.AlgorithmFixedWindow, Window: time.Second}); err != nil {
		return nil, fmt.Errorf("envoy: %w", err)
	}
	if s.reservations, err = newReservations(options); err != nil {
		return nil, errors.Join(err, s.tables.close())
	}
	return s, nil
}

// SetConfig makes the rules of c active. Counters keep their counts. If limits of some rules cannot be counted, the
// previous rules stay active, and the error names each such rule.
func (s *Service) SetConfig(c *config.Config) error {
	s.configMutex.Lock()
	defer s.configMutex.Unlock()
	next := &activeConfig{config: c, rules: make([]rule, len(c.Rules()))}
	if err := s.fill(next); err != nil {
		s.stats.ConfigLoadError.Add(1)
		next.release()
		return errors.Join(err, s.tables.closeUnused(s.rules()))
	}
	s.followQuotas(next)
	s.tables.generation.Add(1) // before any request under the next configuration can ask for a table
	previous := s.active.Swap(next)
	s.stats.ConfigLoadSuccess.Add(1)
	if previous != nil {
		previous.uses.end()
		previous.release()
	}
	return s.tables.closeUnused(c.Rules())
}

func (s *Service) rules() []*config.Rule {
	if current := s.active.Load(); current != nil {
		return current.config.Rules()
	}
	return nil
}

// ConfigFailed counts a configuration that could not be read.
func (s *Service) ConfigFailed() { s.stats.ConfigLoadError.Add(1) }

// Settle charges the stores with the hits that were admitted while a store was lost. It ends when the context ends. Its
// error says how many counters could not be charged. For these counters, the stores may then admit the same number of
// hits again. Call Settle after the last request, before Close.
func (s *Service) Settle(ctx context.Context) error { return s.tables.settle(ctx) }

// Close stops the tables' sweepers. Requests must have ended.
func (s *Service) Close() error {
	if current := s.active.Load(); current != nil {
		current.release()
	}
	return errors.Join(s.reservations.uses.Close(), s.tables.close())
}

// maxDescriptors bounds the descriptors of a request. An empty descriptor takes two bytes in the request, but hundreds
// in memory.
const maxDescriptors = 10_000

// These are envoyproxy/ratelimit's error texts. envoyproxy/ratelimit sets no gRPC code, so clients see the code
// Unknown.
var (
	errNoDomain      = status.Error(codes.Unknown, "rate limit domain must not be empty")
	errNoDescriptors = status.Error(codes.Unknown, "rate limit descriptor list must not be empty")
	errNoConfig      = status.Error(codes.Unknown, "no rate limit configuration loaded")
)

// A check is a descriptor of a request under one of its limits. It has the data for the descriptor's status in the
// answer.
type check struct {
	index        int   // the index of its descriptor in the request
	rule         *rule // nil: no rule matches, or the request carries its own limit
	limit        config.Limit
	currentLimit *rlsv3.RateLimitResponse_RateLimit
	table        table
	counter      counter
	stats        *ruleStats
	mark         mark         // identifies the counter in the id of a reservation
	quota        engine.Quota // the quota of a counter in memory; zero if the table's own limit applies
	hits         uint64
	isRefund     bool // hits are given back
	isEstimate   bool // the hits are an estimate; an estimate above the limit takes as many hits as the limit
	isReport     bool // hits are counted even beyond the limit

	applies       bool           // there is a limit to check
	charged       uint64         // hits that have been taken from the table
	receipt       engine.Receipt // the receipt for charged; zero if there is none
	hold          limits.Held    // what an estimate has taken from a store
	isOver        bool
	fromMemo      bool   // the memo has decided
	skipped       bool   // not charged, because another check is over
	withoutStore  bool   // decided without the store because it did not answer
	before, after uint64 // hits in the window before this check, and after it
	remaining     uint64
	reset         time.Duration
}

// ShouldRateLimit answers one request: see the comment of the package. Its errors have envoyproxy/ratelimit's texts.
func (s *Service) ShouldRateLimit(
	ctx context.Context, request *rlsv3.RateLimitRequest,
) (*rlsv3.RateLimitResponse, error) {
	response, err := s.decide(ctx, request)
	if s.options.Observer != nil {
		s.options.Observer.Answered(response, err)
	}
	return response, err
}

func (s *Service) decide(ctx context.Context, request *rlsv3.RateLimitRequest) (response *rlsv3.RateLimitResponse, err error) {
	err = s.withChecks(request, marker{}, func(current *activeConfig, checks []check) (err error) {
		switch {
		case current.config.AllOrNothing(request.GetDomain()):
			err = s.countAllOrNothing(ctx, checks)
		case s.options.StopWhenOver:
			err = s.countUnlessOver(ctx, checks)
		default:
			err = s.count(ctx, checks)
		}
		s.observe(request, checks, err != nil)
		if s.countStoreErrors(checks, err); err != nil {
			return status.Error(codes.Unknown, err.Error())
		}
		response = s.answer(request, checks)
		return nil
	})
	return response, err
}

// withChecks makes the checks of a request under the active rules, and calls fn to decide them. It returns the error of
// fn. It also returns an error if the request cannot be decided.
func (s *Service) withChecks(request *rlsv3.RateLimitRequest, m marker, fn func(*activeConfig, []check) error) error {
	switch {
	case request.GetDomain() == "":
		return s.serviceError(errNoDomain)
	case len(request.GetDescriptors()) == 0:
		return s.serviceError(errNoDescriptors)
	}
	if n := len(request.GetDescriptors()); n > maxDescriptors {
		return s.serviceError(status.Errorf(codes.InvalidArgument, "%d descriptors: want at most %d", n, maxDescriptors))
	}
	current := s.acquire()
	if current == nil {
		return s.serviceError(errNoConfig)
	}
	defer s.release(current)
	work := scratches.Get().(*scratch)
	work.marker = m
	defer work.release()
	for i := range request.GetDescriptors() {
		if err := s.addChecks(current, request, i, work); err != nil {
			return s.serviceError(err)
		}
	}
	if !current.config.HasDomain(request.GetDomain()) {
		s.stats.unknownDomain(request.GetDomain()).totalHits.Add(1)
	}
	applyReplaces(work.checks)
	return fn(current, work.checks)
}

func (s *Service) countStoreErrors(checks []check, err error) {
	if err != nil {
		s.stats.StoreErrors.Add(1)
	} else if slices.ContainsFunc(checks, func(c check) bool { return c.withoutStore }) {
		s.stats.StoreErrors.Add(1)
		s.stats.WithoutStore.Add(1)
	}
}

func (s *Service) serviceError(err error) error {
	s.stats.ServiceErrors.Add(1)
	return err
}

// addChecks adds the checks of a descriptor to the list in work. There is one check, with a counter, for each limit. If
// there is no limit, there is a single check without a counter.
func (s *Service) addChecks(current *activeConfig, request *rlsv3.RateLimitRequest, index int, work *scratch) error {
	descriptor, domain := request.GetDescriptors()[index], request.GetDomain()
	c := check{index: index, hits: max(uint64(request.GetHitsAddend()), 1), isRefund: descriptor.GetIsNegativeHits()}
	if addend := descriptor.GetHitsAddend(); addend != nil {
		c.hits = min(addend.GetValue(), maxHits+1)
	}
	if override := descriptor.GetLimit(); override != nil && current.config.HasDomain(domain) {
		c, err := s.withOverride(c, domain, descriptor, override, work)
		work.checks = append(work.checks, c)
		return err
	}
	rules := current.config.Match(domain, descriptor)
	if len(work.checks)+len(rules) > maxDescriptors {
		return status.Errorf(codes.InvalidArgument, "more than %d limits of descriptors: want fewer descriptors", maxDescriptors)
	}
	for _, rule := range rules {
		work.checks = append(work.checks, s.withRule(c, &current.rules[rule.Index], domain, descriptor, work))
	}
	if len(rules) == 0 {
		work.checks = append(work.checks, c)
	}
	return nil
}

// withRule returns the check c with its limit, table and counter under the rule r.
func (s *Service) withRule(c check, r *rule, domain string, descriptor *commonv3.RateLimitDescriptor, work *scratch) check {
	c.rule = r
	c.applies, c.limit, c.table, c.currentLimit = true, r.Limit, r.table, r.currentLimit
	if p, ok := r.valueLimit(descriptor); ok {
		c.useValueLimit(p)
	}
	if c.limit.Unlimited {
		return c
	}
	if c.stats = r.stats; c.stats == nil {
		c.stats = s.stats.forRequest(statName{text: r.StatOf(descriptor)})
	}
	c.setKey(r.Rule, domain, descriptor, work)
	return c
}

func (s *Service) withOverride(
	c check, domain string, descriptor *commonv3.RateLimitDescriptor,
	override *commonv3.RateLimitDescriptor_RateLimitOverride, work *scratch,
) (check, error) {
	limit, err := config.Override(override)
	if err != nil {
		return c, status.Errorf(codes.InvalidArgument, "limit of the descriptor: %s", err)
	}
	table, err := s.tables.get(limit)
	if err != nil {
		return c, status.Errorf(codes.ResourceExhausted, "limit of the descriptor: %s", err)
	}
	c.applies, c.limit, c.table, c.currentLimit = true, limit, table, currentLimit(limit, "")
	c.stats = s.stats.forRequest(statName{text: config.OverrideStat(domain, descriptor)})
	c.setKey(nil, domain, descriptor, work)
	return c, nil
}

func (c *check) setKey(rule *config.Rule, domain string, descriptor *commonv3.RateLimitDescriptor, work *scratch) {
	if c.table != nil {
		work.key = config.AppendKey(work.key[:0], rule, domain, descriptor)
		if _, isStored := c.table.(storeTable); isStored && rule != nil {
			work.key = rule.AppendStored(work.key)
		}
		if local, ok := c.table.(localTable); ok {
			c.counter = local.keyWithQuota(work.key, c.quota)
		} else {
			c.counter = c.table.key(work.key)
		}
		c.mark = work.newMark(c, work.key)
	}
}

// A scratch is the memory of a request while it is answered. Later requests reuse it.
type scratch struct {
	checks []check
	key    []byte
	marker
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

const maxScratch = 4096

func (w *scratch) release() {
	clear(w.checks)
	if w.checks = w.checks[:0]; cap(w.checks) <= maxScratch && cap(w.key) <= maxScratch {
		scratches.Put(w)
	}
}

// applyReplaces marks checks as not applying: a rule that matches may name other rules that it replaces.
func applyReplaces(checks []check) {
	for i := range checks {
		if checks[i].rule == nil {
			continue
		}
		for _, name := range checks[i].rule.Replaces {
			for j := range checks {
				if c := &checks[j]; c.rule != nil && c.rule.Name == name && !c.limit.Unlimited {
					c.applies = false
				}
			}
		}
	}
}
