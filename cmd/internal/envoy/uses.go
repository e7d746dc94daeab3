package envoy

import "sync"

// uses counts the requests in progress under a configuration. Tables that are no longer needed may be closed only after
// the last of these requests. A closed table in a store would not charge the tokens of a request, and a closed table in
// memory would forget them. No request waits for the lock.
type uses struct {
	requests sync.RWMutex // each request holds it for reading
	ended    bool         // set while the lock is held for writing
}

// acquire returns the active configuration, or nil. The caller must release it.
func (s *Service) acquire() *activeConfig {
	for {
		current := s.active.Load()
		// acquire fails for a configuration that has been replaced. But then another configuration is active, so try
		// again.
		if current == nil || current.uses.acquire() {
			return current
		}
	}
}

func (s *Service) release(current *activeConfig) { current.uses.requests.RUnlock() }

func (u *uses) acquire() bool {
	if !u.requests.TryRLock() {
		return false
	}
	if u.ended {
		u.requests.RUnlock()
		return false
	}
	return true
}

// end waits until the requests under the configuration have been answered. The configuration must already be replaced,
// so that no new request uses it.
func (u *uses) end() {
	u.requests.Lock()
	u.ended = true
	u.requests.Unlock()
}
