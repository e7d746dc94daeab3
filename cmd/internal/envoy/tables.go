package envoy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/limits/spec"
	"github.com/weir-go/weir/redislimit"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

const (
	// A request with more than maxHits hits counts as one with maxHits+1, which no limit admits. So sums of hits cannot
	// overflow.
	maxHits = config.MaxHits
	// maxTables bounds the tables for the rules of a configuration. A limit in a request can add a table only while
	// there are fewer tables than this. There is always room for the tables of all units, because requests can name any
	// unit. During a change, the tables of both configurations exist.
	maxTables = 64
)

// tables has the limiters: one for each length of fixed windows, and one for each limit with another algorithm. For
// fixed windows, the limiter's policy admits 2^32 hits, because this package compares the count with the limit.
type tables struct {
	open    func(kind config.Limit, policy engine.Policy) (table, error)
	stores  []*redislimit.Client
	inStore bool // the tables are in a store
	now     func() time.Time

	generation atomic.Uint64 // the number of the active configuration

	mu     sync.RWMutex
	byKind map[config.Limit]*entry
}

// An entry is a table with a generation: the configuration under which a request's own limit last used the table.
// Without the generation, a new configuration could close a table that a request is about to use.
type entry struct {
	table
	generation atomic.Uint64
}

// A table is a limiter in memory or in a store.
type table interface {
	key(text []byte) counter
	take(ctx context.Context, c counter, n uint64) (engine.Decision, error)
	peek(ctx context.Context, c counter, n uint64) (engine.Decision, error)
	charge(ctx context.Context, c counter, n uint64) (engine.Decision, error)
	refund(ctx context.Context, c counter, n uint64) error
	reset(ctx context.Context, c counter) error
	stats() engine.Stats
	close() error
}

// counter is the key of a counter, in the form that the counter's table needs.
type counter struct {
	hash engine.Key // for a table in memory
	text string     // for a table in a store
}

// A localTable is the table of one rule in memory. Several rules may share its limiter, but each rule has its own
// previous limiters.
type localTable struct{ limiter *live.Limiter }

func (t localTable) key(text []byte) counter { return t.keyWithQuota(text, engine.Quota{}) }

// keyWithQuota returns the key of a counter that has its own limit, the quota. Debts in previous limiters are charged
// under this limit, too.
func (t localTable) keyWithQuota(text []byte, quota engine.Quota) counter {
	key := t.limiter.KeyBytes(text).With(quota)
	if formers := t.limiter.Formers(); formers.Any() {
		formers.Move(t.limiter.Limiter, key, func(previous *engine.Limiter) (engine.Key, bool) { return previous.KeyBytes(text), true })
	}
	return counter{hash: key}
}

func (t localTable) take(_ context.Context, c counter, n uint64) (engine.Decision, error) {
	return t.limiter.TakeKey(c.hash, n), nil
}

func (t localTable) peek(_ context.Context, c counter, n uint64) (engine.Decision, error) {
	return t.limiter.Peek(c.hash, n), nil
}

func (t localTable) charge(_ context.Context, c counter, n uint64) (engine.Decision, error) {
	d, _ := t.limiter.Charge(c.hash, n) // hits that exceed the bound of the debt are not counted
	return d, nil
}

func (t localTable) refund(_ context.Context, c counter, n uint64) error {
	t.limiter.Refund(c.hash, n)
	return nil
}

func (t localTable) reset(_ context.Context, c counter) error {
	t.limiter.Reset(c.hash)
	return nil
}

func (t localTable) quota(l config.Limit) (engine.Quota, error) {
	return t.limiter.Quota(l.Policy())
}

func (t localTable) stats() engine.Stats { return t.limiter.Stats() }

func (t localTable) close() error {
	t.limiter.Release()
	return nil
}

// maxDebtTime returns a time after which a key owes nothing under a limit: eleven windows or, for a token bucket,
// eleven times its fill time. A bucket owes at most ten times its limit (see engine.MaxDebt).
func maxDebtTime(l config.Limit) time.Duration {
	if l.Algorithm == engine.AlgorithmTokenBucket && l.MaxQuota > 0 {
		return 11 * spec.LongestQuota
	}
	if l.Algorithm == engine.AlgorithmTokenBucket {
		return 11 * min(l.Policy().Window(), math.MaxInt64/11)
	}
	return 11 * l.Window
}

// maxDebt returns how many tokens a key can owe when the rule's algorithm is replaced. A fixed window also counts
// refused hits, but these are no debt.
func maxDebt(r *config.Rule) uint64 {
	if r.Overdraw {
		return maxHits
	}
	tokens := max(uint64(r.Limit.Requests), r.Limit.Burst)
	if r.Quotas != nil {
		tokens = max(tokens, r.Quotas.Limit.Quota)
	}
	return tokens
}

func newTables(o Options) *tables {
	t := &tables{open: openInMemory(o), inStore: o.Store != nil, now: o.now, byKind: map[config.Limit]*entry{}}
	for _, store := range []*redislimit.Client{o.Store, o.PerSecondStore} {
		if store != nil {
			t.open, t.stores = openInStore(o), append(t.stores, store)
		}
	}
	return t
}

// haveSinglePart reports whether each store is known to have a single part. A cluster has several.
func (t *tables) haveSinglePart() bool {
	return !slices.ContainsFunc(t.stores, func(c *redislimit.Client) bool { return c.Health().Parts > 1 })
}

func openInMemory(o Options) func(config.Limit, engine.Policy) (table, error) {
	options := []engine.Option{engine.MaxKeys(o.MaxKeys), engine.Overflow(o.Overflow)}
	if o.Clock != nil {
		options = append(options, engine.ClockFunc(o.Clock))
	}
	return func(kind config.Limit, policy engine.Policy) (table, error) {
		opts := options
		if kind.MaxQuota > 0 {
			opts = append(opts[:len(opts):len(opts)], engine.MaxQuota(spec.Room(policy, kind.MaxQuota)))
		}
		limiter, err := engine.New(policy, opts...)
		if err != nil {
			return nil, err
		}
		return localTable{live.New(limiter)}, nil
	}
}

// kind returns what all limits in one table have in common.
func kind(l config.Limit) config.Limit {
	if l.Algorithm == engine.AlgorithmFixedWindow {
		return config.Limit{Algorithm: l.Algorithm, Window: l.Window, Calendar: l.Calendar}
	}
	l.Unit, l.Multiplier = 0, 0
	return l
}

// get returns the table for the limit of a request. It makes the table if it is missing. For a limit that needs no
// table, it returns nil.
func (t *tables) get(l config.Limit) (table, error) {
	if !needsTable(l) {
		return nil, nil
	}
	maxCount := maxTables
	if !l.IsUnit() { // there is always room for tables of units
		maxCount -= config.Units
	}
	return t.getKind(kind(l), maxCount, t.generation.Load())
}

// getFor is get for a rule of a new configuration. The map needed has the kinds of tables that earlier rules need.
// Tables that only the previous configuration needs do not count towards maxTables.
func (t *tables) getFor(l config.Limit, needed map[config.Limit]bool) (table, error) {
	if !needsTable(l) {
		return nil, nil
	}
	k := kind(l)
	if len(needed) >= maxTables && !needed[k] {
		return nil, tooMany(k, maxTables)
	}
	needed[k] = true
	return t.getKind(k, math.MaxInt, 0)
}

// getKind returns the table of a kind. If the table is missing, getKind makes it, unless there are already maxCount
// tables. generation is the configuration of a request that needs the table, or 0 for a rule. It is stored under the
// lock that closeUnused takes.
func (t *tables) getKind(k config.Limit, maxCount int, generation uint64) (table, error) {
	t.mu.RLock()
	e := t.byKind[k].touch(generation)
	t.mu.RUnlock()
	if e != nil {
		return e.table, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e = t.byKind[k].touch(generation); e != nil {
		return e.table, nil
	}
	if len(t.byKind) >= maxCount {
		return nil, tooMany(k, maxCount)
	}
	table, err := t.open(k, policyOf(k))
	if err != nil {
		return nil, err
	}
	t.byKind[k] = (&entry{table: table}).touch(generation)
	return table, nil
}

func (e *entry) touch(generation uint64) *entry {
	if e != nil && generation > e.generation.Load() {
		e.generation.Store(generation)
	}
	return e
}

func needsTable(l config.Limit) bool {
	return !l.Unlimited && (l.Requests > 0 || l.Algorithm == engine.AlgorithmFixedWindow)
}

func tooMany(k config.Limit, maxCount int) error {
	return fmt.Errorf("a window of %s needs a table, and there are already %d, the maximum", k.Window, maxCount)
}

func policyOf(kind config.Limit) engine.Policy {
	if kind.Calendar != nil {
		return kind.Calendar.Policy(maxHits)
	}
	if kind.Algorithm == engine.AlgorithmFixedWindow {
		return engine.FixedWindow(maxHits, kind.Window).Aligned()
	}
	return kind.Policy()
}

// follow returns the table of a rule, and the limiter in it that outlives the configuration. The table has the shared
// limiter, and previous limiters of the rule whose counts still matter. previous is the rule's limiter under the
// previous configuration, or nil. While the rule needs no table, that limiter is kept.
func (t *tables) follow(r *config.Rule, sharedTable table, previous *live.Limiter) (table, *live.Limiter, error) {
	local, ok := sharedTable.(localTable)
	switch {
	case previous != nil && (sharedTable == nil || ok && local.limiter.Limiter == previous.Limiter):
		previous.Acquire().RaiseMost(maxDebt(r))
		if sharedTable != nil {
			sharedTable = localTable{previous}
		}
		return sharedTable, previous, nil
	case !ok:
		return sharedTable, nil, nil
	}
	limiter := local.limiter.Share(maxDebtTime(r.Limit), t.now, maxDebt(r))
	if previous != nil {
		if err := previous.HandOver(limiter); err != nil {
			limiter.Release()
			return nil, nil, err
		}
	}
	return localTable{limiter}, limiter, nil
}

// closeUnused closes the tables that no rule needs. It does not close a table for the length of a unit, because limits
// of requests use it, too. Other tables of fixed windows stay while there is room for the tables of all units.
func (t *tables) closeUnused(rules []*config.Rule) error {
	needed := map[config.Limit]bool{}
	for _, r := range rules {
		needed[kind(r.Limit)] = true
	}
	var unused []table
	t.mu.Lock()
	drop := func(k config.Limit) {
		unused = append(unused, t.byKind[k].table)
		delete(t.byKind, k)
	}
	for k := range t.byKind {
		if k.Algorithm != engine.AlgorithmFixedWindow && !needed[k] {
			drop(k)
		}
	}
	generation := t.generation.Load()
	for k, e := range t.byKind {
		if len(t.byKind) > maxTables-config.Units && !needed[k] && !k.IsUnit() && e.generation.Load() < generation {
			drop(k)
		}
	}
	t.mu.Unlock()
	var errs []error
	for _, table := range unused { // Close may call the store
		errs = append(errs, table.close())
	}
	return errors.Join(errs...)
}

type tableStats struct {
	Kind  config.Limit
	Stats engine.Stats
}

// name returns the table's name, which is different for each table.
func (s *tableStats) name() string {
	k := s.Kind
	if k.Algorithm == engine.AlgorithmFixedWindow {
		return fmt.Sprintf("%s of %s", k.Algorithm, k.Length())
	}
	if k.Algorithm == engine.AlgorithmTokenBucket {
		return fmt.Sprintf("%s of %d per %s, burst %d", k.Algorithm, k.Requests, k.Window, k.Burst)
	}
	return fmt.Sprintf("%s of %d per %s", k.Algorithm, k.Requests, k.Window)
}

func (t *tables) stats() []tableStats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var stats []tableStats
	for k, table := range t.byKind {
		stats = append(stats, tableStats{k, table.stats()})
	}
	return stats
}

// settle charges the stores with the hits that the replica has admitted without them. It ends when ctx ends.
func (t *tables) settle(ctx context.Context) error {
	t.mu.RLock()
	var storeTables []storeTable
	for _, e := range t.byKind {
		if s, ok := e.table.(storeTable); ok {
			storeTables = append(storeTables, s)
		}
	}
	t.mu.RUnlock()
	errs := make([]error, len(storeTables))
	var wg sync.WaitGroup
	for i, s := range storeTables {
		wg.Go(func() { errs[i] = s.settle(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (t *tables) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, table := range t.byKind {
		errs = append(errs, table.close())
	}
	clear(t.byKind)
	return errors.Join(errs...)
}
