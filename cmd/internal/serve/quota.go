package serve

import (
	"github.com/weir-go/weir/cmd/internal/rules"
)

// logQuotas says what was read of files and hashes of limits.
func (s *Server) logQuotas(all []*rules.Rule) {
	for _, r := range all {
		if t := r.Quotas(); t != nil {
			s.config.Log.Info("limits read", "rule", r.Name, "from", r.Quota.From(), "keys", t.Len(), "different", t.Policies(), "bytes", t.Bytes())
		}
	}
}

// limitFailed logs an error of a limit, such as that of a quota that its limiter does not take. The log sums up floods.
func (s *Server) limitFailed(limit string, err error) {
	s.config.Log.Warn("a limit could not be applied as the request wanted", "rule", limit, "err", err)
}
