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

	stats   statistics
	loading sync.Mutex // locked during SetConfig
	active  atomic.Pointer[active]
}

// Config returns the active configuration, or nil before the first one.
func (s *Service) Config() *config.Config {
	if now := s.active.Load(); now != nil {
		return now.config
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
	if s.tables.shared {
		s.memo = newMemo(options.MemoBytes)
	}
	s.stats.most = int64(options.MaxStats)
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
	s.loading.Lock()
	defer s.loading.Unlock()
	next := &active{config: c, rules: make([]rule, len(c.Rules()))}
	if err := s.fill(next); err != nil {
		s.stats.ConfigLoadError.Add(1)
		next.release()
		return errors.Join(err, s.tables.keep(s.rules()))
	}
	s.followQuotas(next)
	s.tables.generation.Add(1) // before any request under the next configuration can ask for a table
	before := s.active.Swap(next)
	s.stats.ConfigLoadSuccess.Add(1)
	if before != nil {
		before.uses.end()
		before.release()
	}
	return s.tables.keep(c.Rules())
}

func (s *Service) rules() []*config.Rule {
	if now := s.active.Load(); now != nil {
		return now.config.Rules()
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
	if now := s.active.Load(); now != nil {
		now.release()
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

// An ask is a descriptor of a request under one of its limits. It has the data for the descriptor's status in the
// answer.
type ask struct {
	of      int   // the index of its descriptor in the request
	rule    *rule // nil: no rule matches, or the request carries its own limit
	limit   config.Limit
	current *rlsv3.RateLimitResponse_RateLimit
	table   table
	counter counter
	stats   *ruleStats
	mark    mark         // identifies the counter in the id of a reservation
	bring   engine.Quota // the quota of the counter's key in a table in memory; zero if the table's own limit applies
	hits    uint64
	back    bool // hits are given back
	holds   bool // the hits are an estimate; an estimate above the limit takes as many hits as the limit
	reports bool // hits are counted even beyond the limit

	applies       bool           // there is a limit to check
	charged       uint64         // hits that have been taken from the table
	receipt       engine.Receipt // the receipt for charged; zero if there is none
	held          limits.Held    // what an estimate has taken from a store
	over          bool
	remembered    bool   // the memo has decided
	stayed        bool   // not charged, because another ask is over
	alone         bool   // decided without the store because it did not answer
	before, after uint64 // hits in the window before this ask, and after it
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
	err = s.asked(request, marker{}, func(now *active, asks []ask) (err error) {
		switch {
		case now.config.AllOrNothing(request.GetDomain()):
			err = s.countAllOrNothing(ctx, asks)
		case s.options.StopWhenOver:
			err = s.countUnlessOver(ctx, asks)
		default:
			err = s.count(ctx, asks)
		}
		s.observe(request, asks, err != nil)
		if s.noteStores(asks, err); err != nil {
			return status.Error(codes.Unknown, err.Error())
		}
		response = s.answer(request, asks)
		return nil
	})
	return response, err
}

// asked makes the asks of a request under the active rules, and calls the function do to decide them. It returns the
// error of do. It also returns an error if the request cannot be decided.
func (s *Service) asked(request *rlsv3.RateLimitRequest, m marker, do func(*active, []ask) error) error {
	switch {
	case request.GetDomain() == "":
		return s.refuse(errNoDomain)
	case len(request.GetDescriptors()) == 0:
		return s.refuse(errNoDescriptors)
	}
	if n := len(request.GetDescriptors()); n > maxDescriptors {
		return s.refuse(status.Errorf(codes.InvalidArgument, "%d descriptors: want at most %d", n, maxDescriptors))
	}
	now := s.acquire()
	if now == nil {
		return s.refuse(errNoConfig)
	}
	defer s.release(now)
	work := scratches.Get().(*scratch)
	work.marker = m
	defer work.free()
	for i := range request.GetDescriptors() {
		if err := s.ask(now, request, i, work); err != nil {
			return s.refuse(err)
		}
	}
	if !now.config.Has(request.GetDomain()) {
		s.stats.unknownDomain(request.GetDomain()).totalHits.Add(1)
	}
	replace(work.asks)
	return do(now, work.asks)
}

func (s *Service) noteStores(asks []ask, err error) {
	if err != nil {
		s.stats.StoreErrors.Add(1)
	} else if slices.ContainsFunc(asks, func(a ask) bool { return a.alone }) {
		s.stats.StoreErrors.Add(1)
		s.stats.Alone.Add(1)
	}
}

func (s *Service) refuse(err error) error {
	s.stats.ServiceErrors.Add(1)
	return err
}

// ask adds the asks of a descriptor to the list in work. There is one ask, with a counter, for each limit. If there is
// no limit, there is a single ask without a counter.
func (s *Service) ask(now *active, request *rlsv3.RateLimitRequest, of int, work *scratch) error {
	descriptor, domain := request.GetDescriptors()[of], request.GetDomain()
	a := ask{of: of, hits: max(uint64(request.GetHitsAddend()), 1), back: descriptor.GetIsNegativeHits()}
	if addend := descriptor.GetHitsAddend(); addend != nil {
		a.hits = min(addend.GetValue(), mostHits+1)
	}
	if override := descriptor.GetLimit(); override != nil && now.config.Has(domain) {
		a, err := s.override(a, domain, descriptor, override, work)
		work.asks = append(work.asks, a)
		return err
	}
	matched := now.config.Match(domain, descriptor)
	if len(work.asks)+len(matched) > maxDescriptors {
		return status.Errorf(codes.InvalidArgument, "more than %d limits of descriptors: want fewer descriptors", maxDescriptors)
	}
	for _, rule := range matched {
		work.asks = append(work.asks, s.under(a, &now.rules[rule.Index], domain, descriptor, work))
	}
	if len(matched) == 0 {
		work.asks = append(work.asks, a)
	}
	return nil
}

// The method under returns the ask a with its limit, table and counter under the rule r.
func (s *Service) under(a ask, r *rule, domain string, descriptor *commonv3.RateLimitDescriptor, work *scratch) ask {
	a.rule = r
	a.applies, a.limit, a.table, a.current = true, r.Limit, r.table, r.current
	if p, ok := r.ofValue(descriptor); ok {
		a.byValue(p)
	}
	if a.limit.Unlimited {
		return a
	}
	if a.stats = r.stats; a.stats == nil {
		a.stats = s.stats.of(statName{text: r.StatOf(descriptor)})
	}
	a.setKey(r.Rule, domain, descriptor, work)
	return a
}

func (s *Service) override(
	a ask, domain string, descriptor *commonv3.RateLimitDescriptor,
	override *commonv3.RateLimitDescriptor_RateLimitOverride, work *scratch,
) (ask, error) {
	limit, err := config.Override(override)
	if err != nil {
		return a, status.Errorf(codes.InvalidArgument, "limit of the descriptor: %s", err)
	}
	table, err := s.tables.get(limit)
	if err != nil {
		return a, status.Errorf(codes.ResourceExhausted, "limit of the descriptor: %s", err)
	}
	a.applies, a.limit, a.table, a.current = true, limit, table, currentLimit(limit, "")
	a.stats = s.stats.of(statName{text: config.OverrideStat(domain, descriptor)})
	a.setKey(nil, domain, descriptor, work)
	return a, nil
}

func (a *ask) setKey(matched *config.Rule, domain string, descriptor *commonv3.RateLimitDescriptor, work *scratch) {
	if a.table != nil {
		work.key = config.AppendKey(work.key[:0], matched, domain, descriptor)
		if _, stored := a.table.(storeTable); stored && matched != nil {
			work.key = matched.AppendStored(work.key)
		}
		if local, ok := a.table.(localTable); ok {
			a.counter = local.keyUnder(work.key, a.bring)
		} else {
			a.counter = a.table.key(work.key)
		}
		a.mark = work.of(a, work.key)
	}
}

// A scratch is the memory of a request while it is answered. Later requests reuse it.
type scratch struct {
	asks []ask
	key  []byte
	marker
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

const maxScratch = 4096

func (w *scratch) free() {
	clear(w.asks)
	if w.asks = w.asks[:0]; cap(w.asks) <= maxScratch && cap(w.key) <= maxScratch {
		scratches.Put(w)
	}
}

// replace marks asks as not applying: a rule that matches may name other rules that it replaces.
func replace(asks []ask) {
	for i := range asks {
		if asks[i].rule == nil {
			continue
		}
		for _, name := range asks[i].rule.Replaces {
			for j := range asks {
				if a := &asks[j]; a.rule != nil && a.rule.Name == name && !a.limit.Unlimited {
					a.applies = false
				}
			}
		}
	}
}
