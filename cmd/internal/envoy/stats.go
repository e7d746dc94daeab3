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
	Alone             atomic.Uint64 // requests that were answered although the store did not answer for all their asks
	GlobalShadowMode  atomic.Uint64
	Dropped           atomic.Uint64 // hits whose names were not stored because there are already MaxStats names

	names  sync.Map     // statName -> *ruleStats
	count  atomic.Int64 // names that come from requests
	most   int64
	beyond ruleStats
}

type ruleStats struct {
	totalHits, overLimit, nearLimit, withinLimit, shadowMode, remembered atomic.Uint64
}

// A statName is the name of a rule or of an unknown domain. It records which of the two it is, because a rule's name
// may contain a value from a request.
type statName struct {
	text   string
	domain bool
}

// maxStatName is the largest length of a name that comes from a request. Up to MaxStats such names are stored.
const maxStatName = 1024

// The method of returns the counts of a name that comes from a request. If there are already MaxStats such names, it
// increments Dropped, and returns counts that are not exported.
func (s *statistics) of(name statName) *ruleStats {
	if found, ok := s.names.Load(name); ok {
		return found.(*ruleStats)
	}
	if s.count.Load() >= s.most || len(name.text) > maxStatName {
		s.Dropped.Add(1)
		return &s.beyond
	}
	found, loaded := s.names.LoadOrStore(name, &ruleStats{})
	if !loaded {
		s.count.Add(1)
	}
	return found.(*ruleStats)
}

// rule returns the counts of a name in the configuration. It never returns nil.
func (s *statistics) rule(name string) *ruleStats {
	found, _ := s.names.LoadOrStore(statName{text: name}, &ruleStats{})
	return found.(*ruleStats)
}

const domainNotFound = ".domain_not_found"

func (s *statistics) unknownDomain(domain string) *ruleStats {
	return s.of(statName{domain, true})
}
