package envoy

import "sync"

// uses counts the requests in progress under a configuration. When no requests are left, the tables that the next
// configuration does not need are closed. They must not be closed earlier: a closed table in a store would not charge
// the tokens that it has admitted, and a closed table in memory forgets them. No request waits here.
type uses struct {
	requests sync.RWMutex // read-held by each
	over     bool         // set under the lock
}

// acquire returns the active configuration, which the caller must release; nil if there is none.
func (s *Service) acquire() *active {
	for {
		now := s.active.Load()
		// A replaced configuration cannot be acquired. Then there is another one.
		if now == nil || now.uses.acquire() {
			return now
		}
	}
}

func (s *Service) release(now *active) { now.uses.requests.RUnlock() }

func (u *uses) acquire() bool {
	if !u.requests.TryRLock() {
		return false
	}
	if u.over {
		u.requests.RUnlock()
		return false
	}
	return true
}

// end waits until the requests have been answered. The configuration must have been replaced before, so that no new
// ones come.
func (u *uses) end() {
	u.requests.Lock()
	u.over = true
	u.requests.Unlock()
}
