package envoy

import "sync"

// uses counts the requests in progress under a configuration. When no such requests are left, the tables that the next
// configuration does not need are closed. These tables must not be closed earlier, because a request may still take
// tokens from them: a closed table in a store would not charge these tokens, and a closed table in memory would forget
// them. No request waits for the lock.
type uses struct {
	requests sync.RWMutex // each request holds it for reading
	over     bool         // set while the lock is held for writing
}

// acquire returns the active configuration, or nil if there is none. The caller must release the configuration.
func (s *Service) acquire() *active {
	for {
		now := s.active.Load()
		// A replaced configuration cannot be acquired. In that case another configuration is active by now, so try
		// again.
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
// requests start to use it.
func (u *uses) end() {
	u.requests.Lock()
	u.over = true
	u.requests.Unlock()
}
