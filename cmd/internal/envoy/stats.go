package envoy

import (
	"sync"
	"sync/atomic"
)

// statistics has the counts of the service, under envoyproxy/ratelimit's names.
type statistics struct {
	ConfigLoadSuccess atomic.Uint64
	ConfigLoadError   atomic.Uint64
	ServiceErrors     atomic.Uint64
	StoreErrors       atomic.Uint64
	WithoutStore      atomic.Uint64 // requests answered although the store did not answer for all their checks
	GlobalShadowMode  atomic.Uint64
	Dropped           atomic.Uint64 // decisions that were not counted by name: see forRequest

	names     sync.Map     // statName -> *ruleStats
	nameCount atomic.Int64 // names that come from requests
	maxNames  int64
	overflow  ruleStats
}

type ruleStats struct {
	totalHits, overLimit, nearLimit, withinLimit, shadowMode, fromMemo atomic.Uint64
}

// A statName is the name of a rule or of an unknown domain. It records which of the two it is, because a rule's name
// may contain a value from a request.
type statName struct {
	text     string
	isDomain bool
}

// maxStatName is the largest length of a name that comes from a request. Up to MaxStats such names are stored.
const maxStatName = 1024

// forRequest returns the counts of a name that comes from a request. If there are already MaxStats such names, or the
// name is too long, it increments Dropped, and returns counts that are not exported.
func (s *statistics) forRequest(name statName) *ruleStats {
	if value, ok := s.names.Load(name); ok {
		return value.(*ruleStats)
	}
	if s.nameCount.Load() >= s.maxNames || len(name.text) > maxStatName {
		s.Dropped.Add(1)
		return &s.overflow
	}
	value, loaded := s.names.LoadOrStore(name, &ruleStats{})
	if !loaded {
		s.nameCount.Add(1)
	}
	return value.(*ruleStats)
}

// forRule returns the counts of a name in the configuration. It never returns nil.
func (s *statistics) forRule(name string) *ruleStats {
	value, _ := s.names.LoadOrStore(statName{text: name}, &ruleStats{})
	return value.(*ruleStats)
}

const domainNotFound = ".domain_not_found"

func (s *statistics) unknownDomain(domain string) *ruleStats {
	return s.forRequest(statName{domain, true})
}
